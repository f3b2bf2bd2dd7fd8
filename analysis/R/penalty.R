# P_L3: what a line costs by where it comes from.

#' P_L3 by state and distance class. A dependent load or a hand-over of one line: an upper estimate of what a
#' buffered store pays.
fit_penalty <- function(results) {
  matrix <- results$matrix
  rows <- ok_rows(results$runs)
  matrix <- matrix[matrix$key %in% rows$key & is.finite(matrix$ns), , drop = FALSE]
  if (is.null(matrix) || nrow(matrix) == 0) {
    return(no_number("P_L3", "not measured here: no ok rows of the c2c kernel"))
  }
  matrix$distance <- distance_text(matrix$distance)
  groups <- split(matrix, list(matrix$state, matrix$distance), drop = TRUE)
  do.call(rbind, lapply(unname(groups), function(g) {
    per_launch <- tapply(g$ns, g$key, stats::median)
    fit_row(launch_interval(rows[match(names(per_launch), rows$key), , drop = FALSE], as.numeric(per_launch)), term = "P_L3",
            variant = paste(g$state[1], g$distance[1], sep = ", "),
            source = source_text(rows[rows$folder %in% sub("/[^/]*$", "", g$key[1]), , drop = FALSE]))
  }))
}

#' Latency of a dependent load by working set (chase, one thread): where the caches end.
fit_chase <- function(runs) {
  rows <- fit_rows(rows_of(runs, "chase", "latency"))
  rows <- rows[rows$threads == 1 & grepl("set=[0-9]+", rows$params), , drop = FALSE]
  if (nrow(rows) == 0) return(no_number("chase", "not measured here: no ok single-thread rows of the chase kernel"))
  rows$set <- as.numeric(sub(".*set=([0-9]+).*", "\\1", rows$params))
  rows$pages <- ifelse(grepl("pages=", rows$params), sub(".*pages=([a-z]+).*", "\\1 pages", rows$params), "working set")
  groups <- split(rows, list(rows$set, rows$pages), drop = TRUE)
  do.call(rbind, lapply(unname(groups), function(g) {
    fit_row(launch_interval(g, g$ns_per_op), term = "chase", variant = g$pages[1], n = 1, size = g$set[1],
            source = source_text(g))
  }))
}

#' The distance class of a pair of CPUs as c2c records it, in words.
distance_text <- function(class) {
  words <- c(smt = "same core", l3 = "same L3", package = "same socket", remote = "other socket")
  text <- unname(words[class])
  ifelse(is.na(text), "distance not recorded", text)
}


# ---- planted migrations ------------------------------------------------------------------------------------

#' Rows of churn with planted lines: `dose` (lines an op that were planted), `moved` (those that another thread wrote last).
#' @param rows ok rows of churn
#' @param metrics of read_results, for planted_moved_ratio
planted_rows <- function(rows, metrics) {
  rows$dose <- param_number(rows, "planted")
  rows$ring <- ifelse(grepl("planted_ring=own", rows$params, fixed = TRUE), "own", "shared")
  ratio <- metric_of(rows, metrics, "planted_moved_ratio")
  rows$moved <- ifelse(rows$dose == 0 | rows$ring == "own", 0, rows$dose * ratio)
  rows <- rows[is.finite(rows$dose), , drop = FALSE]
  cell <- cell_key(transform(rows, params = sub(" ?planted=[0-9]+ ?", " ", sub("planted_ring=[a-z]+", "", params))),
                   c("folder", "allocator", "threads", setdiff(CELL_COLUMNS, "work")))
  rows[cell %in% cell[rows$moved > 0], , drop = FALSE] # doses that move nothing tell no slope
}

#' A metric of metrics.csv for each row; NA where it has none.
metric_of <- function(rows, metrics, name) {
  own <- metrics[metrics$name == name, , drop = FALSE]
  suppressWarnings(as.numeric(own$value[match(rows$key, own$key)]))
}

#' Slope of `y` over the dose, of the shared ring less that of the threads' own lines, for one line that moved.
#' @param rows of planted_rows, one placement and thread count, with the column `y`
#' @return number; NA where there are not two doses, or where nothing moved
planted_slope <- function(rows) {
  slope <- function(own, x) if (length(unique(x)) < 2) NA_real_ else stats::cov(x, own$y) / stats::var(x)
  shared <- rows[rows$ring == "shared" | rows$dose == 0, , drop = FALSE]
  control <- rows[rows$ring == "own" | rows$dose == 0, , drop = FALSE]
  per_dose <- slope(control, control$dose)
  share <- sum(shared$moved) / sum(shared$dose)
  slope(shared, shared$moved) - (if (is.na(per_dose)) 0 else per_dose) / share
}

#' P_eff: what a line that moves costs an op, by placement and thread count.
#' @param rows of planted_rows
#' @param time of each, in `unit`
#' @return rows of fit.csv; none where nothing was planted
fit_effective <- function(rows, time, unit) {
  if (nrow(rows) == 0) return(NULL)
  rows$y <- time
  groups <- split(rows, list(rows$placement, rows$threads, rows$allocator), drop = TRUE)
  do.call(rbind, lapply(unname(groups), function(g) {
    got <- bootstrap_parameters(g[c("y", "dose", "moved", "ring", "seed", "env_bytes")],
                                function(rows) c(P_eff = planted_slope(rows)), by = c("dose", "ring"),
                                confidence = confidence_of(g))
    fit_row(got, g$allocator[1], "P_eff", g$placement[1], g$threads[1], unit = unit, source = source_text(g),
            reason = if (is.na(got$value)) "not identifiable here: fewer than two doses of planted lines" else "")
  }))
}

#' P_eff over P_L3: how much of a dependent load's price a line that moves costs an op. Threads close together are set against
#' the cheapest distance of a changed line that c2c saw, threads far apart against the dearest.
#' @param effective of fit_effective
#' @param penalty of fit_penalty
#' @return rows of fit.csv; none where one of the two has no number
fit_effective_ratio <- function(effective, penalty) {
  changed <- penalty$value[startsWith(penalty$variant, "modified") & is.finite(penalty$value)]
  effective <- effective[is.finite(effective$value), , drop = FALSE]
  if (is.null(effective) || nrow(effective) == 0 || length(changed) == 0) return(NULL)
  do.call(rbind, lapply(seq_len(nrow(effective)), function(i) {
    e <- effective[i, ]
    ratio <- e$value / (if (e$variant == "scatter") max(changed) else min(changed))
    row <- fit_row(data.frame(value = ratio, low = NA_real_, high = NA_real_, launches = e$launches, method = "quotient"),
                   e$allocator, "P_eff/P_L3", e$variant, e$n, unit = "", source = e$source_sweep)
    row$reason <- "no interval: a quotient of two kernels' medians"
    row
  }))
}
