# What several R tests share. run.R has loaded the analysis, the generator, `contract` and `suite`.

#' A fresh folder that is removed when the test ends.
local_folder <- function(env = parent.frame()) {
  dir <- tempfile("ak-")
  dir.create(dir)
  withr_defer(unlink(dir, recursive = TRUE), env)
  dir
}

#' Run an expression when a frame ends (base R, so that no further package is needed).
withr_defer <- function(expr, env) {
  thunk <- as.call(list(function() expr))
  do.call(on.exit, list(thunk, add = TRUE), envir = env)
}

run_columns <- function() contract[["runs.csv"]]$column

#' The smallest row of runs.csv that is ok.
plain_row <- function(...) {
  row <- synthetic_common(run_columns(), "s", "churn", "glibc", 1, 2, 1)
  row <- synthetic_timed(row, 10, 1000)
  given <- list(...)
  row[names(given)] <- given
  row
}

#' Write rows as folder DIR/NAME and read the root back.
read_rows <- function(dir, rows, name = "s", ...) {
  for (i in seq_along(rows)) if (rows[[i]]$row_id == "") rows[[i]]$row_id <- sprintf("%016x", i)
  synthetic_write(file.path(dir, name), contract, rows, ...)
  read_results(dir, contract)
}

# ---- the ledger ----

#' A suite's data in a fresh folder, with kernels of applications and, where given, other hypotheses.
#' @param lines of hypotheses.csv
#' @param only claims to keep
#' @param change function(lines of conditions.csv) -> those that are written
claims_in <- function(lines = readLines(file.path(suite, "paper", "hypotheses.csv")), only = "", change = identity,
                      env = parent.frame()) {
  dir <- local_folder(env)
  for (sub in c("paper", "kernels/apps", "experiments", "allocators")) dir.create(file.path(dir, sub), recursive = TRUE)
  copy <- function(...) file.copy(file.path(suite, ...), file.path(dir, dirname(file.path(...))))
  copy("experiments", "schema.md")
  file.create(file.path(dir, "experiments", list.files(file.path(suite, "experiments"), "[.]sweep$")))
  copy("allocators", "registry.ini")
  kernels <- c("churn", "anatomy", "fragment", "apps/ndjson", "apps/http_server", "apps/item_store", "apps/file_hash")
  file.create(file.path(dir, "kernels", paste0(kernels, ".c")))
  kept <- function(lines) c(lines[1], lines[-1][grepl(paste0("^(", only, ")"), lines[-1])])
  writeLines(kept(lines), file.path(dir, "paper", "hypotheses.csv"))
  for (name in c("claims.csv", "claim_values.csv")) {
    writeLines(kept(readLines(file.path(suite, "paper", name))), file.path(dir, "paper", name))
  }
  conditions <- readLines(file.path(suite, "paper", "conditions.csv"))
  sources <- if (nzchar(only)) "^(source|contention paper)," else ""
  writeLines(change(conditions[grepl(sources, conditions)]), file.path(dir, "paper", "conditions.csv"))
  read_claims(file.path(dir, "paper"))
}

#' Rows of two allocators: each repetition's value of column for A is that for B times ratio.
pair_rows_of <- function(kernel, pair, column, base, ratio, reps = 8, spread = 0.001, threads = 1, cpus = 4, ...) {
  rows <- list()
  for (rep in seq_len(reps)) for (k in 1:2) {
    row <- synthetic_common(run_columns(), "s", kernel, pair[k], threads, cpus, rep, ...)
    row <- synthetic_timed(row, 50, 1e6)
    value <- base * (if (k == 1) ratio * (1 + spread * (rep - (reps + 1) / 2)) else 1)
    row[[column]] <- value
    if (column == "ops_per_s") row$wall_ns <- round(as.numeric(row$ops) / value * 1e9)
    rows <- c(rows, list(row))
  }
  rows
}

#' A metric of metrics.csv for each row, which gets an id.
with_metric <- function(rows, name, values) {
  for (i in seq_along(rows)) rows[[i]]$row_id <- sprintf("%016x", i)
  list(rows = rows, metrics = sprintf("%s,%s,ratio,%s,", vapply(rows, `[[`, "", "row_id"), name, values))
}

#' The exit status and output of an analysis script.
run_analysis <- function(script, ...) {
  said <- suppressWarnings(system2("Rscript", c(shQuote(file.path(suite, "analysis", script)), shQuote(c(...))),
                                   stdout = TRUE, stderr = TRUE))
  status <- attr(said, "status")
  list(status = if (is.null(status)) 0L else status, said = paste(said, collapse = "\n"))
}

#' An interval as verdict_ratio takes it.
interval_of <- function(value, low, high, launches = 10) {
  data.frame(value = value, low = low, high = high, launches = launches, method = "order statistics")
}

# ---- error rates: counts over synthetic data sets ----------------------------------------------

# AK_DRAWS in the environment asks for more data sets than make check has time for (tests/long.sh).
DRAWS <- max(200, as.integer(Sys.getenv("AK_DRAWS", "200")), na.rm = TRUE)
UNLUCKY <- 0.001 # chance that a method which keeps its word fails a limit; every limit is a binomial count
BOOTSTRAP_LEVEL <- 0.90 # what bootstrap intervals, which hold their level only in the limit, have to be over

#' Count the draws in which something holds, under a seed.
#' @param code function() -> TRUE or FALSE (or several, counted each)
count_draws <- function(seed, code, draws = DRAWS) with_seed(seed, rowSums(matrix(replicate(draws, code()), ncol = draws)))

covers <- function(interval, truth) interval$low <= truth & truth <= interval$high

#' Intervals at an exact level miss no more often than it says.
expect_exact <- function(hits, draws = DRAWS, level = CONFIDENCE) {
  for (count in hits) expect_gte(count, stats::qbinom(UNLUCKY, draws, level))
}

#' Bootstrap intervals hold as counts at their level do, or, over more draws, are shown to be over BOOTSTRAP_LEVEL.
expect_bootstrap <- function(hits, draws = DRAWS, level = CONFIDENCE) {
  limit <- min(stats::qbinom(UNLUCKY, draws, level), stats::qbinom(1 - UNLUCKY, draws, BOOTSTRAP_LEVEL) + 1)
  for (count in hits) expect_gte(count, limit)
}

#' Intervals that are known to be wrong: shown to miss more often than they say.
expect_fails <- function(hits, draws = DRAWS, level = CONFIDENCE) {
  for (count in hits) expect_lt(count, stats::qbinom(UNLUCKY, draws, level))
}

#' A test that is wrong no more often than it says.
expect_level <- function(wrong, draws = DRAWS, alpha = ALPHA) {
  for (count in wrong) expect_lte(count, stats::qbinom(1 - UNLUCKY, draws, alpha))
}
