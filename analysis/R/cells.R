# Choosing and comparing cells: which rows answer a question, and which launches are pairs.

# Everything planned about a launch except allocator, threads and repetition.
CELL_COLUMNS <- c("kernel", "variant", "cpus", "placement", "numa_policy", "size_min", "size_max", "size_dist",
                  "work", "live_blocks", "lifetime_dist", "touch", "heap_state", "machine_id",
                  "counters", "sim_mode", "sim_quantum", "params")

#' One text that tells cells apart, over the given columns.
cell_key <- function(runs, columns) {
  if (nrow(runs) == 0) return(character())
  do.call(paste, c(lapply(columns, function(name) ifelse(is.na(runs[[name]]), "", runs[[name]])), sep = "\x1f"))
}

#' Rows of a kernel from the first preferred sweep folder that has ok rows of it, else from any one folder.
#' @param runs all rows
#' @param kernel kernel name
#' @param preferred sweeps (or folders) by name, in order of preference
#' @return rows of one folder (failed ones included); zero rows where there are none
rows_of <- function(runs, kernel, preferred = character()) {
  own <- runs[runs$kernel %in% kernel, , drop = FALSE]
  have <- if (any(own$status %in% "ok")) ok_rows(own) else own
  wanted <- lapply(preferred, function(name) {
    c(sort(unique(have$folder[have$sweep %in% name])), sort(unique(have$folder[have$folder %in% name])))
  })
  chosen <- c(unlist(wanted), sort(unique(have$folder)), NA)
  own[own$folder %in% chosen[1], , drop = FALSE]
}

#' The sweep that rows of one folder come from, with the folder where it has another name.
source_text <- function(rows) {
  named <- unique(stats::na.omit(rows$sweep))
  folder <- rows$folder[1]
  if (length(named) == 0) return(paste("folder", folder))
  if (identical(as.character(named), folder)) folder else paste0(paste(named, collapse = ", "), ", folder ", folder)
}

#' Keep the slice of the plan with the most ok rows: everything fixed except what the figure varies.
#' @param runs rows of one kernel
#' @param vary columns that may differ within the slice (besides allocator and threads)
#' @return the slice; attribute "others" counts the slices left out, "fixed" says what was held
pick_slice <- function(runs, vary = character()) {
  columns <- setdiff(CELL_COLUMNS, vary)
  key <- cell_key(runs, columns)
  ok_keys <- key[runs$status == "ok"]
  counts <- table(if (length(ok_keys) > 0) ok_keys else key)
  best <- names(counts)[which.max(counts)]
  slice <- runs[key %in% best, , drop = FALSE]
  attr(slice, "others") <- length(unique(key)) - 1L
  slice
}

#' Interval of a value of launches that are one cell, at the level of their run and by their blocks: every median that is
#' printed or drawn goes through here or through launch_ratio.
#' @param rows launches
#' @param x a value a launch
#' @param together how many such intervals are to hold at once
#' @return as median_interval
launch_interval <- function(rows, x, together = 1) {
  median_interval(x, each_confidence(together, confidence_of(rows)), block_of(rows))
}

#' Interval of the ratio x / y of launches that are pairs, likewise.
#' @param rows of x, in the order of the pairs
#' @param by columns that tell the cells apart in which launches share a block
launch_ratio <- function(rows, x, y, by = character(), together = 1) {
  paired_ratio(x, y, each_confidence(together, confidence_of(rows)), block_of(rows, by))
}

#' Interval of a function of the medians of independent groups of launches, likewise.
#' @param groups list of list(rows, x)
#' @param combine as in combined_interval
launch_combined <- function(groups, combine) {
  combined_interval(lapply(groups, `[[`, "x"), combine, max(vapply(groups, function(g) confidence_of(g$rows), 0)),
                    lapply(groups, function(g) block_of(g$rows)))
}

#' Interval of a column for each group.
#' @param rows ok rows
#' @param by grouping columns
#' @param column measured column
#' @param together how many of them are to hold at once
#' @return data.frame of by, value, low, high, launches, method; groups in first-seen order
group_intervals <- function(rows, by, column, together = 1) {
  if (nrow(rows) == 0) return(NULL)
  key <- cell_key(rows, by)
  parts <- lapply(unique(key), function(one) {
    group <- rows[key == one, , drop = FALSE]
    cbind(group[1, by, drop = FALSE], launch_interval(group, group[[column]], together))
  })
  out <- do.call(rbind, parts)
  rownames(out) <- NULL
  out
}

#' Pair the launches of two sets by repetition within the same cell.
#' @param a,b ok rows; every column of `columns` and rep must agree for a pair
#' @return data.frame of row indices a, b
pair_rows <- function(a, b, columns) {
  key_a <- cell_key(a, c(columns, "rep", "run_id"))
  key_b <- cell_key(b, c(columns, "rep", "run_id"))
  match_b <- match(key_a, key_b)
  data.frame(a = which(!is.na(match_b)), b = match_b[!is.na(match_b)])
}

#' Paired ratio of a column between two allocators.
#' @param rows ok rows of one kernel and slice
#' @param numerator,denominator allocator names
#' @param column measured column
#' @param columns what must agree for a pair (besides rep and run)
#' @param together how many such ratios are to hold at once
allocator_ratio <- function(rows, numerator, denominator, column, columns = c("threads", CELL_COLUMNS), together = 1) {
  a <- rows[rows$allocator == numerator, , drop = FALSE]
  b <- rows[rows$allocator == denominator, , drop = FALSE]
  pairs <- pair_rows(a, b, columns)
  a <- a[pairs$a, , drop = FALSE]
  launch_ratio(a, a[[column]], b[[column]][pairs$b], columns, together)
}

#' A kernel parameter of each row as a number; NA where it has none of that name.
param_number <- function(rows, name) {
  pattern <- paste0(".*(^| )", name, "=([0-9]+([.][0-9]+)?).*")
  ifelse(grepl(pattern, rows$params), suppressWarnings(as.numeric(sub(pattern, "\\2", rows$params))), NA_real_)
}

#' Why the counters of rows are empty: what the back end that ran said, without those that were only tried.
counters_reason <- function(rows) {
  rows <- rows[!is.na(rows$counters_reason), , drop = FALSE]
  if (nrow(rows) == 0) return(NA_character_)
  own <- paste0("(^|.*; )", rows$counters[1], ": ")
  sub(own, "", rows$counters_reason[1])
}
