# figures.R RESULTS OUT: data, PDF and SVG of every figure, and the macros of their captions, from OUT/fit.csv and RESULTS.
file_arg <- grep("^--file=", commandArgs(FALSE), value = TRUE)
this <- dirname(normalizePath(gsub("~+~", " ", sub("^--file=", "", file_arg), fixed = TRUE))) # R's way to pass a blank
source(file.path(this, "R", "main.R"))

run_script("Rscript analysis/figures.R RESULTS OUT", 2, function(args) {
  load_functions(file.path(this, "R"))
  results <- read_results(args[1], read_contract(file.path(suite_root(), "experiments", "schema.md")))
  registry <- complete_registry(read_registry(file.path(suite_root(), "allocators", "registry.ini")),
                                all_launches(results)$allocator)
  write_figures(all_figures(results, read_fit(args[2]), registry), registry, file.path(this, "plots"), args[2])
}, outputs = c("fig-*.tex", "figure-macros.tex", "*.gp", "*.dat", "*.pdf", "*.svg"))
