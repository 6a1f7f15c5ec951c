"use strict";
// Formatting, elements and the tooltip: what every chart and table uses.
const data = JSON.parse(document.getElementById("data").textContent);

// As decimal() of preload/base/readable.h, step by step, since a page has texts of both: half of the last place is
// rounded away from zero. toFixed() would do so of what is nearest in binary, which is below 1.15.
function decimal(value, unit, places) {
  const scale = 10 ** places, size = Math.abs(value), rest = size % unit;
  let whole = Math.round((size - rest) / unit), part = Math.floor((2 * scale * rest + unit) / (2 * unit));
  if (part >= scale) { whole += 1; part -= scale; }
  return (value < 0 && whole + part > 0 ? "-" : "") + whole + (places > 0 ? "." + String(part).padStart(places, "0") : "");
}

function percent(part, whole, places) { return decimal(100 * part, whole, places); }

// As format_bytes() of tools/cli/sizes.h.
function bytes(value) {
  if (value < 1024) return decimal(value, 1, 0) + " B";
  const units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  let unit = 0, size = 1024;
  while (value / size >= 1023.5 && unit + 1 < units.length) { size *= 1024; ++unit; }
  return decimal(value, size, value / size < 99.95 ? 1 : 0) + " " + units[unit];
}

// As format_rate() of tools/cli/sizes.h.
function rate(bytesPerSecond) {
  if (bytesPerSecond >= 1e9) return decimal(bytesPerSecond, 1e9, 1) + " GB/s";
  if (bytesPerSecond >= 1e6) return decimal(bytesPerSecond, 1e6, 1) + " MB/s";
  return decimal(bytesPerSecond, 1e3, 1) + " KB/s";
}

// Whole numbers of an axis, and nothing between them. The first one may be -0.
function wholeTick(value) { return Number.isInteger(value) ? (value + 0).toLocaleString("en") : ""; }
// As format_duration() of tools/cli/sizes.h.
function duration(ns) {
  if (ns >= 1e9) return decimal(ns, 1e9, 2) + " s";
  if (ns >= 1e6) return decimal(ns, 1e6, 1) + " ms";
  if (ns >= 1e3) return decimal(ns, 1e3, ns < 99950 ? 1 : 0) + " us";
  return decimal(ns, 1, 0) + " ns";
}

// A step of 1, 2 or 5 times a power of `base` units so that about `count` steps make up the span.
function niceStep(span, count) {
  const rough = span / Math.max(1, count);
  const power = Math.pow(10, Math.floor(Math.log10(rough)));
  for (const factor of [1, 2, 5]) if (factor * power >= rough) return factor * power;
  return 10 * power;
}

// Memory axes step in powers of two.
function memoryStep(most, count) {
  return Math.pow(2, Math.ceil(Math.log2(Math.max(1, most / Math.max(1, count)))));
}

// Time labels share the unit of the step, so that neighbours can be compared.
function timeLabel(ns, step) {
  const units = [[1e9, "s"], [1e6, "ms"], [1e3, "us"], [1, "ns"]];
  const [size, name] = units.find(([one]) => step >= one * 0.999) || units[3];
  return Number((ns / size).toFixed(6)).toLocaleString("en") + " " + name;
}

function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  fill(node, attributes, children);
  return node;
}

function svg(tag, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  fill(node, attributes, children);
  return node;
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value);
  }
  for (const child of children.flat()) if (child !== null && child !== undefined) node.append(child);
}

function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

// Functions of the program that merely pass allocations on, and the function of a frame, as in view/frames.cpp.
const passingOn = new Set(data.passing_on);
function functionOf(frame) {
  const text = frame.replace(/ \([^()]*\)$/, "");
  const place = text.lastIndexOf(" at ");
  return place < 0 ? text : text.slice(0, place);
}

// The innermost frame that is the program's own and asks for itself: not the driver, the runtime or an allocator on top of them.
function ownFrame(frames) {
  const foreign = /^outside-\d|libcuda(rt)?\.so|libreprise|^cu(da)?[A-Z]|c10::cuda|CachingAllocator|at::(detail|native)::empty|operator new/;
  const own = frames.filter((frame) => !foreign.test(frame));
  return own.find((frame) => !passingOn.has(functionOf(frame))) || own[0] || frames[0] || "";
}

// Without its file, and without parameters where those are long.
function shortFrame(frame) {
  const text = frame.replace(/ \([^()]*\)$/, "").replace(/ \[clone[^\]]*\]/g, "");
  const open = text.indexOf("(");
  if (text.length <= 60 || open <= 0) return text;
  const place = text.lastIndexOf(" at ");
  return text.slice(0, open) + "(\u2026)" + (place > open ? text.slice(place) : "");
}

// The program's own frame with its caller: allocations mostly go through one function of the program's.
function ownFrames(frames) {
  const own = frames.indexOf(ownFrame(frames));
  return [frames[own], frames[own + 1]].filter((frame) => frame).map(shortFrame).join(" \u2190 ");
}

const tip = document.getElementById("tip");
function showTip(text, x, y) {
  tip.textContent = text;
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = x + 16 + box.width > innerWidth ? x - box.width - 12 : x + 16;
  tip.style.left = Math.max(4, left) + "px";
  tip.style.top = Math.max(4, Math.min(y + 14, innerHeight - box.height - 4)) + "px";
}
function hideTip() { tip.hidden = true; }

const redraws = [];
function onRedraw(draw) { redraws.push(draw); draw(); }
function redrawAll() { for (const draw of redraws) draw(); }

// Who draws what the data has under a name. A script of sections/ puts its own here.
const sections = {};

const main = document.getElementById("main");
function section(id, title, text) {
  const node = el("section", { id }, el("h2", {}, title), text ? el("p", { class: "quiet" }, text) : null);
  main.append(node);
  document.getElementById("contents").append(el("a", { href: "#" + id }, title));
  return node;
}

function legend(entries) {
  return el("div", { class: "legend" }, entries.map(([name, css, kind]) => {
    const key = el("i", { class: "key " + (kind || "") });
    if (kind === "dash") key.style.borderColor = `var(--${css})`;
    else key.style.background = `var(--${css})`;
    return el("span", {}, key, name);
  }));
}

function theme() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const set = (name) => { document.documentElement.dataset.theme = name; redrawAll(); };
  set(dark.matches ? "dark" : "light");
  dark.addEventListener("change", () => set(dark.matches ? "dark" : "light"));
  document.getElementById("theme").addEventListener("click",
    () => set(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
}

// Called last: charts follow the window.
function keepFitting() {
  let resizing = 0;
  addEventListener("resize", () => { cancelAnimationFrame(resizing); resizing = requestAnimationFrame(redrawAll); });
  addEventListener("scroll", hideTip, { passive: true });
}
