# Asks `reprise` for its man pages and completions. Run as `cmake -P` with REPRISE and FOLDER.
file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}/man1")
execute_process(COMMAND "${REPRISE}" help --man "${FOLDER}/man1" COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${REPRISE}" help --completion bash OUTPUT_FILE "${FOLDER}/reprise.bash" COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${REPRISE}" help --completion zsh OUTPUT_FILE "${FOLDER}/_reprise" COMMAND_ERROR_IS_FATAL ANY)
file(TOUCH "${FOLDER}/done")
