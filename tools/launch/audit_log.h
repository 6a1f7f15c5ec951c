// What the victim process of an audit writes while it runs: a run log in memory, which goes with us, and which the
// parent follows. Caller: `reprise audit`.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "preload/trace/status.h"

namespace reprise::tools {

struct AuditedKernel {
  std::string kernel;
  std::string outcome;
  std::string why;
  uint64_t launches = 0;
  uint64_t shapes = 0;
  uint64_t audited_shapes = 0;
  uint64_t guarded = 0;
  bool kept = false;  // for other runs
};

struct FaultSeen {
  std::string kernel;
  std::string cause;
  uint64_t launch = 0;
  bool tensor_known = false;
  uint64_t allocation = 0;
  uint64_t bytes = 0;
  uint64_t offset = 0;
  bool operand_known = false;
  uint64_t operand = 0;
};

class AuditLog {
 public:
  static Result<AuditLog> create();
  ~AuditLog();
  AuditLog(AuditLog&& other) noexcept;
  AuditLog& operator=(AuditLog&&) = delete;
  AuditLog(const AuditLog&) = delete;

  // For the child to open.
  const std::string& path() const { return path_; }
  // Takes in what was written since.
  void read();

  bool started() const { return started_; }          // memory was managed
  bool not_managed() const { return not_managed_; }  // it could not be
  bool enough() const { return enough_; }
  uint64_t launches() const { return launches_; }
  const std::vector<FaultSeen>& faults() const { return faults_; }
  // As of the last time that they were told.
  const std::vector<AuditedKernel>& kernels() const { return kernels_; }

 private:
  explicit AuditLog(int file);
  void read_line(const std::string& text);

  int file_;
  std::string path_;
  uint64_t read_bytes_ = 0;
  std::string rest_;  // of a line that is not complete
  bool started_ = false;
  bool not_managed_ = false;
  bool enough_ = false;
  uint64_t launches_ = 0;
  std::vector<FaultSeen> faults_;
  std::vector<AuditedKernel> kernels_;
};

}  // namespace reprise::tools
