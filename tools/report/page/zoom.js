// A canvas with a time axis that zooms and pans: by drag, Ctrl + wheel, pinch, double click, keys and buttons.
class ZoomChart {
  // painter: {span, height(), draw(context, chart), tipAt(x, y, chart)}
  constructor(parent, painter, label, left) {
    this.painter = painter;
    this.left = left;
    this.from = 0;
    this.to = Math.max(1, painter.span);
    this.pointers = new Map();
    this.canvas = el("canvas", { tabindex: 0, role: "img", "aria-label": label });
    const box = el("div", { class: "chart" }, this.canvas);
    this.buttons = el("div", { class: "tools" },
      el("span", { class: "space" }),
      el("button", { type: "button", onclick: () => this.zoom(0.5) }, "Zoom in"),
      el("button", { type: "button", onclick: () => this.zoom(2) }, "Zoom out"),
      el("button", { type: "button", onclick: () => this.all() }, "All"));
    parent.append(this.buttons, box);
    this.listen();
    onRedraw(() => this.draw());
  }

  setPainter(painter) {
    this.painter = painter;
    this.all();
  }
  all() { this.from = 0; this.to = Math.max(1, this.painter.span); this.draw(); }

  show(from, to) {
    const span = Math.max(1, this.painter.span);
    const length = Math.min(span, Math.max(span / 1e6, to - from, 100));
    this.from = Math.min(Math.max(0, from), span - length);
    this.to = this.from + length;
    this.draw();
  }
  zoom(factor, center) {
    const at = center === undefined ? (this.from + this.to) / 2 : center;
    this.show(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }
  pan(share) {
    const step = (this.to - this.from) * share;
    this.show(this.from + step, this.to + step);
  }

  x(time) { return this.left + ((time - this.from) / (this.to - this.from)) * (this.width - this.left - 8); }
  time(x) { return this.from + ((x - this.left) / (this.width - this.left - 8)) * (this.to - this.from); }

  draw() {
    this.width = Math.max(280, this.canvas.parentNode.clientWidth);
    this.height = this.painter.height() + 24;
    const ratio = devicePixelRatio || 1;
    this.canvas.width = this.width * ratio;
    this.canvas.height = this.height * ratio;
    this.canvas.style.height = this.height + "px";
    const context = this.canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.font = "12px system-ui, sans-serif";
    this.drawAxis(context);
    this.painter.draw(context, this);
  }
  drawAxis(context) {
    const step = niceStep(this.to - this.from, (this.width - this.left) / 120);
    context.textAlign = "center";
    for (let time = Math.ceil(this.from / step) * step; time <= this.to; time += step) {
      const x = Math.round(this.x(time)) + 0.5;
      context.strokeStyle = color("grid");
      context.beginPath();
      context.moveTo(x, 0);
      context.lineTo(x, this.height - 20);
      context.stroke();
      context.fillStyle = color("quiet");
      const text = timeLabel(time, step);
      const half = context.measureText(text).width / 2;
      context.fillText(text, Math.min(Math.max(x, half), this.width - half), this.height - 6);
    }
    context.textAlign = "left";
  }

  listen() {
    const canvas = this.canvas;
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey && !event.shiftKey) return;
      event.preventDefault();
      if (event.shiftKey) this.pan(Math.sign(event.deltaY || event.deltaX) * 0.15);
      else this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.time(event.offsetX));
    }, { passive: false });
    canvas.addEventListener("dblclick", (event) => this.zoom(0.4, this.time(event.offsetX)));
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("pointerdown", (event) => {
      this.pointers.set(event.pointerId, event.offsetX);
      canvas.setPointerCapture(event.pointerId);
    });
    for (const name of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(name, (event) => this.pointers.delete(event.pointerId));
    }
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerleave", hideTip);
  }
  key(event) {
    const actions = { "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2),
      "0": () => this.all(), ArrowLeft: () => this.pan(-0.2), ArrowRight: () => this.pan(0.2) };
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  }
  move(event) {
    const before = this.pointers.get(event.pointerId);
    if (before === undefined) {
      const text = this.painter.tipAt(event.offsetX, event.offsetY, this);
      if (text) showTip(text, event.clientX, event.clientY); else hideTip();
      return;
    }
    hideTip();
    const others = [...this.pointers].filter(([id]) => id !== event.pointerId);
    if (others.length > 0) {
      const fixed = others[0][1];
      const factor = Math.max(8, Math.abs(before - fixed)) / Math.max(8, Math.abs(event.offsetX - fixed));
      this.zoom(factor, this.time(fixed));
    } else {
      this.show(this.from - (this.time(event.offsetX) - this.time(before)),
        this.to - (this.time(event.offsetX) - this.time(before)));
    }
    this.pointers.set(event.pointerId, event.offsetX);
  }
}

// Text inside a bar, cut to fit.
function barText(context, text, x, y, width) {
  if (width < 34) return;
  const most = Math.floor((width - 8) / 6.2);
  context.fillText(text.length > most ? text.slice(0, Math.max(1, most - 1)) + "\u2026" : text, x + 4, y);
}
