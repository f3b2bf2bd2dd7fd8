# fit.R RESULTS OUT: fit the cost model; writes OUT/fit.csv and what stands beside it (docs/model.md), prints the held-out error.
file_arg <- grep("^--file=", commandArgs(FALSE), value = TRUE)
this <- dirname(normalizePath(gsub("~+~", " ", sub("^--file=", "", file_arg), fixed = TRUE))) # R's way to pass a blank
source(file.path(this, "R", "main.R"))

run_script("Rscript analysis/fit.R RESULTS OUT", 2, function(args) {
  load_functions(file.path(this, "R"))
  results <- read_results(args[1], read_contract(file.path(suite_root(), "experiments", "schema.md")))
  fit <- fit_model(results)
  write_fit(fit, args[2])
  writeLines(c(held_out_lines(fit$predicted), empty_lines(fit)))
}, outputs = c("fit.csv", "model.csv", "heldout.csv", "steps.csv", "prices.csv", "handover.csv", "terms.csv", "contention.csv",
               "predicted.csv", "planted.csv"))
