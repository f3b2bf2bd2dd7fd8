# reference.R RESULTS OUT: the ledger of a run and what the run was, to be committed (paper/reference/): OUT/claims-verdicts.csv,
# OUT/run.csv, and the README's block as OUT/readme.md, which `make reference` puts there.
file_arg <- grep("^--file=", commandArgs(FALSE), value = TRUE)
this <- dirname(normalizePath(gsub("~+~", " ", sub("^--file=", "", file_arg), fixed = TRUE))) # R's way to pass a blank
source(file.path(this, "R", "main.R"))

run_script("Rscript analysis/reference.R RESULTS OUT", 2, function(args) {
  load_functions(file.path(this, "R"))
  results <- read_results(args[1], read_contract(file.path(suite_root(), "experiments", "schema.md")))
  if (nrow(ok_rows(all_launches(results))) == 0) usage_error(args[1], ": no launch that ended well; nothing to refer to")
  write_ledger(claims_ledger(results, read_claims(file.path(suite_root(), "paper"), results)), args[2])
  run <- reference_run(results)
  write_csv(run, REFERENCE_COLUMNS, file.path(args[2], REFERENCE_FILE))
  write_lines(readme_ledger(read_ledger(args[2]), run), file.path(args[2], "readme.md"))
})
