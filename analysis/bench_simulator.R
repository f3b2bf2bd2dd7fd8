# bench_simulator.R BENCH: the rows of experiments/bench/simulator.sh (BENCH/simulator.csv) into ratios with intervals and
# verdicts: BENCH/simulator-figures.csv, and the table BENCH/simulator.md. Prints the figures.
file_arg <- grep("^--file=", commandArgs(FALSE), value = TRUE)
this <- dirname(normalizePath(gsub("~+~", " ", sub("^--file=", "", file_arg), fixed = TRUE))) # R's way to pass a blank
source(file.path(this, "R", "main.R"))

run_script("Rscript analysis/bench_simulator.R BENCH", 1, function(args) {
  load_functions(file.path(this, "R"))
  bench <- args[1]
  file <- file.path(bench, "simulator.csv")
  if (!file.exists(file)) usage_error(file, ": not there; experiments/bench/simulator.sh makes it")
  rows <- utils::read.csv(file)
  if (!identical(names(rows), SIMULATOR_BENCH_COLUMNS))
    usage_error(file, ":1: expected the columns ", paste(SIMULATOR_BENCH_COLUMNS, collapse = ","))
  figures <- simulator_figures(rows, read_targets(file.path(suite_root(), "experiments", "bench", "simulator-targets.csv")))
  write_csv(figures, FIGURE_COLUMNS, file.path(bench, "simulator-figures.csv"))
  write_lines(simulator_page(figures, bench), file.path(bench, "simulator.md"))
  cat(figures_text(figures), sep = "\n")
}, outputs = c("simulator-figures.csv", "simulator.md"))
