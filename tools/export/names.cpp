#include "tools/export/export.h"

namespace reprise::exports {

const char* kind_name(trace::OpKind kind) {
  using trace::OpKind;
  switch (kind) {
    case OpKind::launch:
      return "launch";
    case OpKind::copy_host_to_device:
      return "copy_host_to_device";
    case OpKind::copy_device_to_host:
      return "copy_device_to_host";
    case OpKind::copy_device_to_device:
      return "copy_device_to_device";
    case OpKind::copy_host_to_host:
      return "copy_host_to_host";
    case OpKind::copy_peer:
      return "copy_peer";
    case OpKind::memset:
      return "memset";
    case OpKind::graph_launch:
      return "graph_launch";
    case OpKind::host_function:
      return "host_function";
    case OpKind::other:
      return "other";
  }
  return "unknown";
}

const char* kind_name(trace::OrderKind kind) {
  using trace::OrderKind;
  switch (kind) {
    case OrderKind::event_record:
      return "event_record";
    case OrderKind::event_wait:
      return "event_wait";
    case OrderKind::event_synchronize:
      return "event_synchronize";
    case OrderKind::event_query:
      return "event_query";
    case OrderKind::stream_synchronize:
      return "stream_synchronize";
    case OrderKind::stream_query:
      return "stream_query";
    case OrderKind::context_synchronize:
      return "context_synchronize";
  }
  return "unknown";
}

const char* kind_name(trace::Origin origin) {
  using trace::Origin;
  switch (origin) {
    case Origin::alloc:
      return "alloc";
    case Origin::pitched:
      return "pitched";
    case Origin::async:
      return "async";
    case Origin::pool:
      return "pool";
    case Origin::managed:
      return "managed";
    case Origin::host:
      return "host";
    case Origin::global:
      return "global";
  }
  return "unknown";
}

const char* kind_name(plan::VertexKind kind) {
  using plan::VertexKind;
  switch (kind) {
    case VertexKind::op:
      return "op";
    case VertexKind::release:
      return "release";
    case VertexKind::offload:
      return "offload";
    case VertexKind::reload:
      return "reload";
  }
  return "unknown";
}

const char* kind_name(plan::EdgeKind kind) {
  using plan::EdgeKind;
  switch (kind) {
    case EdgeKind::data:
      return "data";
    case EdgeKind::memory:
      return "memory";
    case EdgeKind::program:
      return "program";
  }
  return "unknown";
}

const char* kind_name(plan::CallKind kind) {
  using plan::CallKind;
  switch (kind) {
    case CallKind::allocate:
      return "allocate";
    case CallKind::free:
      return "free";
    case CallKind::op:
      return "op";
    case CallKind::give_up:
      return "give_up";
    case CallKind::renew:
      return "renew";
  }
  return "unknown";
}

}  // namespace reprise::exports
