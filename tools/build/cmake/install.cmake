# What `cmake --install` and `cpack` put where, below any prefix: nothing that is installed knows its own path. `reprise` finds
# its libraries beside itself (tools/cli/files.cpp), the preloaded library finds `reprise` (replay/enforcer/planning.cpp).
#   bin                 reprise, reprise-probe
#   lib/reprise         libreprise.so, which has the SONAME of the driver: in a folder of its own, so that no loader finds it
#   lib/reprise/nvml    a library of NVML's name, in front of the driver's
#   lib/reprise/sim     the simulated device; lib/reprise/probe: what the probe measures with; lib/reprise/examples: programs
#   share               man pages, completions, documentation, licences
include(GNUInstallDirs)
set(home "lib/reprise")

# `--prefix relative`: from the folder where it was typed. CMake itself makes it a folder of the build here and there of the root.
install(CODE "get_filename_component(CMAKE_INSTALL_PREFIX \"\${CMAKE_INSTALL_PREFIX}\" ABSOLUTE)")
# First: whether the prefix is a folder that was not there, which the uninstaller removes then.
install(CODE "set(made_prefix \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${home}/made_prefix\")
  if(NOT EXISTS \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\")
    file(WRITE \"\${made_prefix}\" \"\")
  endif()")

install(TARGETS reprise RUNTIME DESTINATION bin)
install(TARGETS reprise_preload LIBRARY DESTINATION ${home})
install(TARGETS reprise_nvml LIBRARY DESTINATION ${home}/nvml NAMELINK_SKIP)

# The simulated device. Libraries there find each other; those of programs find it.
foreach(target reprise_sim_cuda reprise_sim_cudart reprise_sim_cublas reprise_sim_cublasLt reprise_sim_cupti
               reprise_twin_blocks reprise_digest_twins reprise_sim_blas_twins)
  if(TARGET ${target})
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN")
    install(TARGETS ${target} LIBRARY DESTINATION ${home}/sim NAMELINK_SKIP)
  endif()
endforeach()

# The probe finds all of its own in one folder; the link leads there.
set_target_properties(probe_twins probe_runtime_twins PROPERTIES INSTALL_RPATH "$ORIGIN/../sim")
install(TARGETS reprise-probe RUNTIME DESTINATION ${home}/probe)
install(TARGETS reprise_count probe_twins probe_runtime_twins LIBRARY DESTINATION ${home}/probe)
install(PROGRAMS "${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/probe-runtime-shared"
                 "${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/probe-runtime-static" DESTINATION ${home}/probe)
foreach(name cublas cudnn cufft)
  if(TARGET probe-${name})
    install(TARGETS probe-${name} RUNTIME DESTINATION ${home}/probe)
  endif()
endforeach()
install(DIRECTORY "${CMAKE_BINARY_DIR}/share/reprise/probe/" DESTINATION ${home}/probe)
install(CODE "file(MAKE_DIRECTORY \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/bin\")
  file(CREATE_LINK ../${home}/probe/reprise-probe \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/bin/reprise-probe\" SYMBOLIC)")

# Something to try it on, without a GPU or with one.
set_target_properties(chargpt_twins vector_add_twins PROPERTIES INSTALL_RPATH "$ORIGIN/../sim")
install(PROGRAMS "${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/chargpt" DESTINATION ${home}/examples)
install(FILES "${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/chargpt.txt" "${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/vector_add.cubin"
        DESTINATION ${home}/examples)
install(TARGETS vector_add RUNTIME DESTINATION ${home}/examples)
install(TARGETS chargpt_twins vector_add_twins LIBRARY DESTINATION ${home}/examples)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/examples/pytorch" DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)

# What the command line says of itself, as shells and man read it.
set(manual "${CMAKE_BINARY_DIR}/share/manual")
add_custom_command(OUTPUT "${manual}/done" COMMAND "${CMAKE_COMMAND}" -D "REPRISE=$<TARGET_FILE:reprise>" -D "FOLDER=${manual}"
                   -P "${PROJECT_SOURCE_DIR}/tools/build/cmake/manual.cmake"
                   DEPENDS reprise "${PROJECT_SOURCE_DIR}/tools/build/cmake/manual.cmake" VERBATIM)
add_custom_target(manual ALL DEPENDS "${manual}/done")
install(DIRECTORY "${manual}/man1" DESTINATION ${CMAKE_INSTALL_MANDIR})
install(FILES "${manual}/reprise.bash" DESTINATION share/bash-completion/completions RENAME reprise)
install(FILES "${manual}/_reprise" DESTINATION share/zsh/vendor-completions)

# Our licence, and those of the libraries that are linked in, as their packages have them.
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs FILES_MATCHING PATTERN "*.md" PATTERN "*.png")
install(FILES bench/planning.md bench/recompute.md bench/safety.md bench/speed.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/bench)  # which these pages point to
install(FILES bench/gpu/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/bench/gpu)
install(FILES tools/build/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR})
foreach(package libfmt-dev libcli11-dev nlohmann-json3-dev libzstd-dev liblz4-dev)
  set(text "/usr/share/doc/${package}/copyright")
  if(EXISTS "${text}")
    install(FILES "${text}" DESTINATION ${CMAKE_INSTALL_DOCDIR}/licences RENAME "${package}.txt")
  endif()
endforeach()

# Last: the list of all that was installed before it, relative to the prefix, and who removes it by that list.
install(PROGRAMS tools/build/uninstall DESTINATION ${home})
install(CODE "set(list bin/reprise-probe ${home}/files.txt)
  foreach(file IN LISTS CMAKE_INSTALL_MANIFEST_FILES)
    file(RELATIVE_PATH file \"\${CMAKE_INSTALL_PREFIX}\" \"\${file}\")
    list(APPEND list \"\${file}\")
  endforeach()
  if(EXISTS \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${home}/made_prefix\")
    list(APPEND list ${home}/made_prefix)
  endif()
  list(JOIN list \"\\n\" list)
  file(WRITE \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${home}/files.txt\" \"\${list}\\n\")")

set(CPACK_PACKAGE_NAME reprise)
set(CPACK_PACKAGE_VENDOR "The Reprise project")
set(CPACK_PACKAGE_CONTACT "The Reprise project <reprise@example.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "CUDA and PyTorch programs in less GPU memory than they need")
set(CPACK_PACKAGE_DESCRIPTION "A preloaded library listens to one iteration of an unmodified CUDA program, a planner compiles it for a
memory budget, and from then on the plan is enforced: the same bits in less device memory. With a simulated device to try it on.")
set(CPACK_GENERATOR DEB TGZ)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_FILE_NAME "reprise-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR}")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# The programs' runtime library and driver are those of the machine, or the simulated device's.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${CMAKE_BINARY_DIR}/lib/sim")
# Opened at run time where they exist: call sites, their lines, and the bounds by linear program.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libunwind8, libdw1, coinor-libclp1")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libcuda1, graphviz")
include(CPack)
