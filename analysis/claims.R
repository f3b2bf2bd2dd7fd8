# claims.R RESULTS OUT: the ledger of the published claims (paper/*.csv), tested on RESULTS: OUT/claims-verdicts.csv. Prints it.
file_arg <- grep("^--file=", commandArgs(FALSE), value = TRUE)
this <- dirname(normalizePath(gsub("~+~", " ", sub("^--file=", "", file_arg), fixed = TRUE))) # R's way to pass a blank
source(file.path(this, "R", "main.R"))

run_script("Rscript analysis/claims.R RESULTS OUT", 2, function(args) {
  load_functions(file.path(this, "R"))
  results <- read_results(args[1], read_contract(file.path(suite_root(), "experiments", "schema.md")))
  ledger <- claims_ledger(results, read_claims(file.path(suite_root(), "paper"), results))
  write_ledger(ledger, args[2])
  writeLines(ledger_text(ledger))
}, outputs = "claims-verdicts.csv")
