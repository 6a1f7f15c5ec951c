#include "tools/launch/audit_log.h"

#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "tools/cli/run_log_value.h"

namespace reprise::tools {
namespace {

FaultSeen fault_of(const nlohmann::json& line) {
  FaultSeen fault;
  fault.kernel = value_of(line, run_log::audit_fault::kernel);
  fault.cause = value_of(line, run_log::audit_fault::cause);
  fault.launch = value_of(line, run_log::audit_fault::launch);
  fault.tensor_known = line.contains(run_log::audit_fault::allocation.name);
  fault.allocation = value_of(line, run_log::audit_fault::allocation);
  fault.bytes = value_of(line, run_log::audit_fault::bytes);
  fault.offset = value_of(line, run_log::audit_fault::offset);
  fault.operand_known = line.contains(run_log::audit_fault::operand.name);
  fault.operand = value_of(line, run_log::audit_fault::operand);
  return fault;
}

AuditedKernel kernel_of(const nlohmann::json& line) {
  AuditedKernel kernel;
  kernel.kernel = value_of(line, run_log::audit::kernel);
  kernel.outcome = value_of(line, run_log::audit::outcome);
  kernel.why = value_of(line, run_log::audit::why);
  kernel.launches = value_of(line, run_log::audit::launches);
  kernel.shapes = value_of(line, run_log::audit::shapes);
  kernel.audited_shapes = value_of(line, run_log::audit::audited_shapes);
  kernel.guarded = value_of(line, run_log::audit::guarded);
  kernel.kept = value_of(line, run_log::audit::kept) != 0;
  return kernel;
}

}  // namespace

Result<AuditLog> AuditLog::create() {
  const int file = memfd_create("reprise-audit", MFD_CLOEXEC);
  if (file >= 0) return AuditLog(file);
  return Status(StatusCode::io_error,
                fmt::format("no memory for what the audit writes ({}); free some", std::strerror(errno)));
}

// By our number, not the child's: programs close what they did not open.
AuditLog::AuditLog(int file) : file_(file), path_(fmt::format("/proc/{}/fd/{}", getpid(), file)) {}

AuditLog::AuditLog(AuditLog&& other) noexcept
    : file_(std::exchange(other.file_, -1)),
      path_(std::move(other.path_)),
      read_bytes_(other.read_bytes_),
      rest_(std::move(other.rest_)),
      started_(other.started_),
      not_managed_(other.not_managed_),
      enough_(other.enough_),
      launches_(other.launches_),
      faults_(std::move(other.faults_)),
      kernels_(std::move(other.kernels_)) {}

AuditLog::~AuditLog() {
  if (file_ >= 0) close(file_);
}

void AuditLog::read() {
  char bytes[16 * 1024];
  for (ssize_t got; (got = pread(file_, bytes, sizeof bytes, static_cast<off_t>(read_bytes_))) > 0;) {
    read_bytes_ += static_cast<uint64_t>(got);
    rest_.append(bytes, static_cast<size_t>(got));
  }
  size_t begin = 0;
  for (size_t end; (end = rest_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    read_line(rest_.substr(begin, end - begin));
  }
  rest_.erase(0, begin);
}

void AuditLog::read_line(const std::string& text) {
  const nlohmann::json line = nlohmann::json::parse(text, nullptr, false);
  if (!line.is_object()) return;
  const std::string kind = kind_of(line);
  if (kind == run_log::start::line.name) {
    started_ = true;
  } else if (kind == run_log::not_managed::line.name) {
    not_managed_ = true;
  } else if (kind == run_log::audit_fault::line.name) {
    faults_.push_back(fault_of(line));
  } else if (kind == run_log::audit_enough::line.name) {
    enough_ = true;
    launches_ = value_of(line, run_log::audit_enough::launches);
  } else if (kind == run_log::audit::line.name) {
    const AuditedKernel kernel = kernel_of(line);
    // Launches of a kernel that can never be audited are counted apart.
    const auto same = [&](const AuditedKernel& other) {
      return other.kernel == kernel.kernel && other.why.empty() == kernel.why.empty();
    };
    const auto known = std::find_if(kernels_.begin(), kernels_.end(), same);
    if (known == kernels_.end()) {
      kernels_.push_back(kernel);
    } else {
      *known = kernel;
    }
  }
}

}  // namespace reprise::tools
