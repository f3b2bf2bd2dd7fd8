# Resampling what was replicated: launches, or blocks of launches that share a layout.
#
# A block is a set of launches with one seed and one size of the environment: both shift addresses (stack, hash order), and the
# shift is common to the whole block, so launches of one block are not independent (Mytkowicz, Diwan, Hauswirth and Sweeney,
# "Producing wrong data without doing anything obviously wrong", ASPLOS 2009). Which columns make blocks is found, not assumed:
# a column does where it has several values and some launches of every cell share one. A seed of its own for each repetition
# makes none.
#
#   blocks of a cell   what is drawn                                             speaks for
#   none               launches within their cell                                launches
#   MIN_LAUNCHES up    whole blocks, with all their launches                     layouts
#   fewer              launches within their cell and block (strata)             these layouts only; the method says so
#
# A drawn block keeps its launches as they are: drawing among them too would count their noise twice (Davison and Hinkley,
# "Bootstrap methods and their application", 1997, section 3.8). Blocks are drawn once for all cells where all cells have the
# same ones, so that what they share cancels in comparisons; otherwise cell by cell.

BLOCK_COLUMNS <- c("seed", "env_bytes")

#' The block of each row.
#' @param rows launches
#' @param by columns that tell cells apart
#' @param columns that may make blocks
#' @return text a row; NULL where there are no blocks
block_of <- function(rows, by = character(), columns = BLOCK_COLUMNS) {
  columns <- intersect(columns, names(rows))
  cells <- cells_of(rows, by)
  shared <- vapply(columns, function(name) {
    values <- rows[[name]]
    !anyNA(values) && length(unique(values)) > 1 &&
      all(vapply(cells, function(i) length(unique(values[i])) < length(i), TRUE))
  }, TRUE)
  if (nrow(rows) == 0 || !any(shared)) return(NULL)
  block <- cell_key(rows, columns[shared])
  # A cell that is one block has nothing to tell about blocks: then the column names the cell (a library's path is part of
  # the environment).
  if (all(vapply(cells, function(i) length(unique(block[i])) == 1, TRUE))) NULL else block
}

#' Row numbers of each cell.
cells_of <- function(rows, by) {
  if (length(by) == 0) list(seq_len(nrow(rows))) else unname(split(seq_len(nrow(rows)), cell_key(rows, by)))
}

#' What is drawn from what.
#' @param rows launches
#' @param by columns that tell cells apart
#' @param block as block_of gives it
#' @return list: samples (each the units that are drawn with replacement: the row numbers of launches, or a list of the
#'   row numbers of blocks), n (replicates of the smallest cell), words ("" for launches, else how blocks were treated)
resampling_design <- function(rows, by = character(), block = block_of(rows, by)) {
  cells <- cells_of(rows, by)
  smallest <- function(samples) min(lengths(samples))
  if (is.null(block)) {
    return(list(samples = cells, n = smallest(cells), words = ""))
  }
  blocks_in <- lapply(cells, function(i) unname(split(i, block[i])))
  fewest <- smallest(blocks_in)
  if (fewest < MIN_LAUNCHES) {
    return(list(samples = unlist(blocks_in, recursive = FALSE), n = smallest(cells), words = few_blocks(fewest)))
  }
  same <- length(unique(lapply(cells, function(i) sort(unique(block[i]))))) == 1
  samples <- if (same) list(unname(split(seq_len(nrow(rows)), block))) else blocks_in
  list(samples = samples, n = fewest, words = many_blocks(fewest))
}

#' Row numbers of one resample.
draw_rows <- function(samples) {
  unlist(lapply(samples, function(units) units[sample.int(length(units), replace = TRUE)]), use.names = FALSE)
}

#' Row numbers without one unit, for every unit.
#' @return list: rows (row numbers), sample (which sample the unit is of)
leave_one_out <- function(samples) {
  at <- rep(seq_along(samples), lengths(samples))
  units <- unlist(samples, recursive = FALSE)
  list(rows = lapply(seq_along(units), function(j) unlist(units[-j], use.names = FALSE)), sample = at)
}

#' Acceleration of a statistic of several samples, from the jackknife of each (Davison and Hinkley 1997, equation 5.23).
#' @param jack the statistic without one unit, for every unit
#' @param sample which sample each unit is of
#' @return number; 0 where the jackknife says nothing
acceleration <- function(jack, sample = rep(1L, length(jack))) {
  size <- as.numeric(tabulate(sample)[sample])
  influence <- (size - 1) * (stats::ave(jack, sample) - jack) / size
  accel <- sum(influence^3) / (6 * sum(influence^2)^1.5)
  if (is.finite(accel)) accel else 0
}

#' Bounds from bootstrap draws.
#' @param estimate of all launches
#' @param draws of the resamples, finite
#' @param accel from acceleration: the bias-corrected and accelerated interval (Efron, "Better bootstrap confidence
#'   intervals", 1987), ties with the estimate counted half; NULL: the percentile interval, expanded for n
#' @param n replicates
#' @return c(low, high)
draw_bounds <- function(estimate, draws, accel, n, confidence = CONFIDENCE) {
  tail <- (1 - confidence) / 2
  p <- if (is.null(accel)) expanded_tails(n, confidence) else c(tail, 1 - tail)
  if (!is.null(accel)) {
    bias <- stats::qnorm(mean(draws < estimate) + mean(draws == estimate) / 2)
    z <- stats::qnorm(p)
    corrected <- stats::pnorm(bias + (bias + z) / (1 - accel * (bias + z)))
    if (all(is.finite(corrected))) p <- corrected
  }
  as.numeric(stats::quantile(draws, p, type = 6, names = FALSE))
}

#' The tails of a percentile interval, widened for what it lacks with few replicates: the normal quantile against Student's, and
#' n against n - 1 (Hesterberg, "What teachers should know about the bootstrap", 2015, section 5.3).
expanded_tails <- function(n, confidence = CONFIDENCE) {
  low <- stats::pnorm(-sqrt(n / (n - 1)) * stats::qt((1 + confidence) / 2, n - 1))
  c(low, 1 - low)
}
