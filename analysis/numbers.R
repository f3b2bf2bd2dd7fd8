# numbers.R RESULTS OUT: OUT/numbers.tex, a macro for every number of the paper's prose.
file_arg <- grep("^--file=", commandArgs(FALSE), value = TRUE)
this <- dirname(normalizePath(gsub("~+~", " ", sub("^--file=", "", file_arg), fixed = TRUE))) # R's way to pass a blank
source(file.path(this, "R", "main.R"))

run_script("Rscript analysis/numbers.R RESULTS OUT", 2, function(args) {
  load_functions(file.path(this, "R"))
  results <- read_results(args[1], read_contract(file.path(suite_root(), "experiments", "schema.md")))
  claims <- read_claims(file.path(suite_root(), "paper"), results)
  registry <- complete_registry(read_registry(file.path(suite_root(), "allocators", "registry.ini")),
                                all_launches(results)$allocator)
  write_lines(macro_lines(all_numbers(results, read_fit(args[2]), claims, registry, read_ledger(args[2]))),
              file.path(args[2], "numbers.tex"))
}, outputs = "numbers.tex")
