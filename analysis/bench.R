# bench.R BENCH SUBJECT: the rows of experiments/bench/run.sh (folder BENCH) into figures with intervals, targets and
# verdicts: BENCH/figures.csv, and the page BENCH/bench.md. Prints the figures.
file_arg <- grep("^--file=", commandArgs(FALSE), value = TRUE)
this <- dirname(normalizePath(gsub("~+~", " ", sub("^--file=", "", file_arg), fixed = TRUE))) # R's way to pass a blank
source(file.path(this, "R", "main.R"))

run_script("Rscript analysis/bench.R BENCH SUBJECT", 2, function(args) {
  load_functions(file.path(this, "R"))
  bench <- args[1]
  subject <- args[2]
  if (!dir.exists(bench)) usage_error(bench, ": no such folder; experiments/bench/run.sh makes it")
  targets <- read_targets(file.path(suite_root(), "experiments", "bench", "targets.csv"))
  runs <- read_results(bench, read_contract(file.path(suite_root(), "experiments", "schema.md")))$runs
  part <- function(name) if (any(runs$folder %in% name)) runs[runs$folder %in% name, , drop = FALSE]
  table <- function(name) {
    file <- file.path(bench, name)
    if (file.exists(file)) utils::read.csv(file, na.strings = "")
  }
  instructions <- table("instructions.csv")
  figures_of <- function(part, lines) {
    meta <- file.path(bench, paste0(part, ".meta"))
    judged_by_form(lines, if (file.exists(meta)) read_part_meta(meta)$form)
  }
  figures <- rbind(figures_of("instructions", bench_instructions(instructions, subject, targets)),
                   figures_of("cpu", bench_cpu(part("cpu"), subject, targets)),
                   figures_of("latency", bench_latency(part("latency"), subject, targets)),
                   figures_of("trivial", bench_trivial(table("trivial.csv"), subject, targets)),
                   figures_of("sharing", bench_sharing(part("sharing"), subject, targets)),
                   figures_of("scaling", bench_scaling(table("scaling.csv"), subject, targets)))
  write_csv(figures, FIGURE_COLUMNS, file.path(bench, "figures.csv"))
  write_lines(bench_page(figures, instructions, part("cpu"), subject, bench), file.path(bench, "bench.md"))
  cat(figures_text(figures), sep = "\n")
}, outputs = c("figures.csv", "bench.md"), place = 1)
