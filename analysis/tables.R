# tables.R RESULTS OUT: every table of the paper as LaTeX, from OUT/fit.csv, OUT/claims-verdicts.csv, RESULTS
# and the claims in paper/.
file_arg <- grep("^--file=", commandArgs(FALSE), value = TRUE)
this <- dirname(normalizePath(gsub("~+~", " ", sub("^--file=", "", file_arg), fixed = TRUE))) # R's way to pass a blank
source(file.path(this, "R", "main.R"))

run_script("Rscript analysis/tables.R RESULTS OUT", 2, function(args) {
  load_functions(file.path(this, "R"))
  results <- read_results(args[1], read_contract(file.path(suite_root(), "experiments", "schema.md")))
  registry <- complete_registry(read_registry(file.path(suite_root(), "allocators", "registry.ini")),
                                all_launches(results)$allocator)
  claims <- read_claims(file.path(suite_root(), "paper"), results)
  write_tables(all_tables(results, read_fit(args[2]), claims, registry, read_ledger(args[2])), args[2])
}, outputs = c("tab-*.tex", "table-macros.tex"))
