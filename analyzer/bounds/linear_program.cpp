#include "analyzer/bounds/linear_program.h"

#include <coin/Clp_C_Interface.h>
#include <dlfcn.h>

#include <algorithm>
#include <mutex>
#include <utility>

namespace reprise::analyzer {
namespace {

// What we use of Clp's C interface. Never closed: it is needed until the process ends.
struct Clp {
  decltype(&Clp_newModel) new_model = nullptr;
  decltype(&Clp_deleteModel) delete_model = nullptr;
  decltype(&Clp_setLogLevel) set_log_level = nullptr;
  decltype(&Clp_loadProblem) load_problem = nullptr;
  decltype(&Clp_setMaximumSeconds) set_maximum_seconds = nullptr;
  decltype(&Clp_initialBarrierSolve) solve = nullptr;
  decltype(&Clp_status) status = nullptr;
  decltype(&Clp_objectiveValue) objective_value = nullptr;
  decltype(&Clp_primalColumnSolution) column_solution = nullptr;
  bool complete = false;
};

template <typename Function>
bool take(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

const Clp& clp() {
  static const Clp opened = [] {
    Clp clp;
    void* library = dlopen("libClp.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return clp;
    clp.complete = take(library, "Clp_newModel", clp.new_model) && take(library, "Clp_deleteModel", clp.delete_model) &&
                   take(library, "Clp_setLogLevel", clp.set_log_level) &&
                   take(library, "Clp_loadProblem", clp.load_problem) &&
                   take(library, "Clp_setMaximumSeconds", clp.set_maximum_seconds) &&
                   take(library, "Clp_initialBarrierSolve", clp.solve) && take(library, "Clp_status", clp.status) &&
                   take(library, "Clp_objectiveValue", clp.objective_value) &&
                   take(library, "Clp_primalColumnSolution", clp.column_solution);
    return clp;
  }();
  return opened;
}

class ClpModel {
 public:
  ClpModel() : model_(clp().new_model()) {}
  ~ClpModel() { clp().delete_model(model_); }
  ClpModel(const ClpModel&) = delete;
  ClpModel& operator=(const ClpModel&) = delete;
  Clp_Simplex* get() const { return model_; }

 private:
  Clp_Simplex* model_;
};

// Of Clp_status().
constexpr int kOptimal = 0;
constexpr int kPrimalInfeasible = 1;

}  // namespace

bool LinearProgram::available() { return clp().complete; }

uint32_t LinearProgram::add_column(double cost, double lower, double upper) {
  cost_.push_back(cost);
  lower_.push_back(lower);
  upper_.push_back(upper);
  return columns() - 1;
}

uint32_t LinearProgram::add_row(double lower, double upper) {
  row_lower_.push_back(lower);
  row_upper_.push_back(upper);
  return rows() - 1;
}

void LinearProgram::set(uint32_t row, uint32_t column, double value) { elements_.push_back({column, row, value}); }

Result<LinearProgram::Solution> LinearProgram::minimise(double seconds) const {
  if (!available()) return Status(StatusCode::unsupported, "libClp.so.1 is not installed");
  // Column by column.
  std::vector<Element> sorted = elements_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Element& a, const Element& b) {
    return std::pair(a.column, a.row) < std::pair(b.column, b.row);
  });
  std::vector<int> starts(cost_.size() + 1, 0);
  std::vector<int> index;
  std::vector<double> value;
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (i > 0 && sorted[i].column == sorted[i - 1].column && sorted[i].row == sorted[i - 1].row) {
      value.back() += sorted[i].value;
      continue;
    }
    index.push_back(static_cast<int>(sorted[i].row));
    value.push_back(sorted[i].value);
    ++starts[sorted[i].column + 1];
  }
  for (size_t i = 1; i < starts.size(); ++i) starts[i] += starts[i - 1];
  // One at a time: the solver's time is the whole process's, and it does not promise to run side by side.
  static std::mutex solving;
  const std::lock_guard lock(solving);
  const ClpModel model;
  clp().set_log_level(model.get(), 0);
  clp().load_problem(model.get(), static_cast<int>(columns()), static_cast<int>(rows()), starts.data(), index.data(),
                     value.data(), lower_.data(), upper_.data(), cost_.data(), row_lower_.data(), row_upper_.data());
  clp().set_maximum_seconds(model.get(), seconds);
  // An interior point, then a vertex near it: the simplex methods are slow where many columns look the same.
  clp().solve(model.get());
  switch (clp().status(model.get())) {
    case kOptimal:
      break;
    case kPrimalInfeasible:
      return Status(StatusCode::infeasible, "the linear program has no solution");
    default:
      return Status(StatusCode::unsupported, "the linear program took too long");
  }
  const double* x = clp().column_solution(model.get());
  return Solution{clp().objective_value(model.get()), {x, x + columns()}};
}

}  // namespace reprise::analyzer
