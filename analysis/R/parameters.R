# Intervals of a model's parameters and predictions: resample the launches within their cells, fit again, look at the spread.
#
# From BCA_LAUNCHES replicates a cell on the interval is bias-corrected and accelerated, below a percentile interval expanded for
# few replicates, under MIN_LAUNCHES none. The same rows give the same numbers: the draws are seeded and their number is fixed.
# A budget of time can therefore end the work only without an interval, never with one from fewer draws.

PARAMETER_RESAMPLES <- 1000L
PARAMETER_SECONDS <- 120
MAX_FAILED_FITS <- 0.05 # of the resamples; beyond, the interval would speak only for the samples that are easy to fit

#' Intervals of parameters by bootstrap.
#' @param rows launches, one a row
#' @param fit function(rows) -> named numbers: parameters and predictions, in any unit; NA where one cannot be had. A second
#'   argument, where it has one, gets the estimate of all launches to start from (NULL for that estimate itself).
#' @param by columns that tell cells apart; launches are drawn within a cell
#' @param block as block_of gives it (NULL: none)
#' @param confidence of each interval
#' @param resamples,seed how many draws, from where
#' @param seconds the budget; run past it and there are no intervals
#' @return data.frame parameter, value, low, high (units of fit), launches (replicates of the smallest cell), method, reason
#'   (why there is no interval; "" where there is one)
bootstrap_parameters <- function(rows, fit, by = character(), block = block_of(rows, by), confidence = CONFIDENCE,
                                 resamples = PARAMETER_RESAMPLES, seconds = PARAMETER_SECONDS, seed = BOOT_SEED) {
  # Only the columns' values are drawn: indexing a data.frame costs more than many a fit.
  pick <- function(i) list2frame(lapply(rows, `[`, i), length(i))
  refit <- if (length(formals(fit)) > 1) fit else function(rows, start) fit(rows)
  estimate <- refit(rows, NULL)
  design <- resampling_design(rows, by, block)
  none <- function(reason) {
    data.frame(parameter = names(estimate), value = unname(estimate), low = NA_real_, high = NA_real_, launches = design$n,
               method = "none", reason = reason)
  }
  if (design$n < MIN_LAUNCHES) {
    out <- none(paste0("no interval: ", plural(design$n, "replicate"), " in a cell, fewer than ", MIN_LAUNCHES))
    out$method <- paste0("n<", MIN_LAUNCHES)
    return(out)
  }
  drawn <- with_seed(seed, lapply(seq_len(resamples), function(r) draw_rows(design$samples)))
  bca <- design$n >= BCA_LAUNCHES
  left <- if (bca) leave_one_out(design$samples)
  fits <- timed_fits(c(drawn, left$rows), function(i) refit(pick(i), estimate), estimate, seconds)
  if (is.null(fits)) {
    return(none(sprintf("no interval: %d fits took longer than %g s", length(drawn) + length(left$rows), seconds)))
  }
  draws <- fits[, seq_along(drawn), drop = FALSE]
  jack <- fits[, -seq_along(drawn), drop = FALSE]
  method <- method_text(if (bca) "BCa" else "expanded percentile", design$words)
  do.call(rbind, lapply(seq_along(estimate), function(k) {
    parameter_interval(names(estimate)[k], estimate[[k]], draws[k, ], if (bca) acceleration(jack[k, ], left$sample), design$n,
                       method, confidence)
  }))
}

#' A list of equally long columns as a data.frame, without the checks of data.frame().
list2frame <- function(columns, n) structure(columns, class = "data.frame", row.names = .set_row_names(n))

#' Fits of many samples, as columns of a matrix; NULL where the time ran out. A fit that fails is NA.
timed_fits <- function(samples, fit, like, seconds) {
  out <- matrix(NA_real_, length(like), length(samples))
  end <- proc.time()[["elapsed"]] + seconds
  for (j in seq_along(samples)) {
    if (proc.time()[["elapsed"]] > end) return(NULL)
    one <- tryCatch(fit(samples[[j]]), error = function(e) NULL)
    if (!is.null(one)) out[, j] <- if (is.null(names(like))) one else one[names(like)]
  }
  out
}

#' One line of bootstrap_parameters.
parameter_interval <- function(name, estimate, draws, accel, n, method, confidence) {
  good <- draws[is.finite(draws)]
  failed <- 1 - length(good) / length(draws)
  reason <- if (!is.finite(estimate)) "no value"
            else if (failed > MAX_FAILED_FITS) sprintf("no interval: no fit in %.0f %% of the resamples", 100 * failed)
            else ""
  bounds <- if (reason == "") draw_bounds(estimate, good, accel, n, confidence) else c(NA_real_, NA_real_)
  data.frame(parameter = name, value = estimate, low = bounds[1], high = bounds[2], launches = n,
             method = if (reason == "") method else "none", reason = reason)
}
