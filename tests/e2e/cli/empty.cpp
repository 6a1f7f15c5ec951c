// Nothing: stands where a library is only looked for.
