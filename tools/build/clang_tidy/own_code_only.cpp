// A plug-in of clang-tidy, loaded by tools/lint: checks visit declarations of our files, not those of system headers.
// Without it nine tenths of the time goes into what <algorithm> and CLI11 declare, where nothing is ours to mend.
#include <clang-tidy/ClangTidyCheck.h>
#include <clang-tidy/ClangTidyModule.h>
#include <clang-tidy/ClangTidyModuleRegistry.h>

#include <vector>

namespace {

using clang::ast_matchers::MatchFinder;

// No check of its own: when the walk over a file begins, it narrows what the walk visits for all checks.
struct OwnCodeOnly : clang::tidy::ClangTidyCheck {
  using ClangTidyCheck::ClangTidyCheck;

  void registerMatchers(MatchFinder* finder) override {
    finder->addMatcher(clang::ast_matchers::translationUnitDecl().bind("unit"), this);
  }

  void check(const MatchFinder::MatchResult& found) override {
    const clang::SourceManager& sources = *found.SourceManager;
    std::vector<clang::Decl*> own;
    for (clang::Decl* declaration : found.Nodes.getNodeAs<clang::TranslationUnitDecl>("unit")->decls()) {
      if (!sources.isInSystemHeader(sources.getExpansionLoc(declaration->getLocation()))) own.push_back(declaration);
    }
    found.Context->setTraversalScope(own);
  }
};

struct Module : clang::tidy::ClangTidyModule {
  void addCheckFactories(clang::tidy::ClangTidyCheckFactories& factories) override {
    factories.registerCheck<OwnCodeOnly>("reprise-own-code-only");
  }
};

const clang::tidy::ClangTidyModuleRegistry::Add<Module> registered("reprise", "what tools/lint adds");

}  // namespace
