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
