# Simulated time: throughput and the tail of malloc by threads, in timed mode.

#' Rows of timed mode that have a simulated throughput: one slice, every thread count.
#' @return list: rows (ok ones), all (failed ones included)
timed_rows <- function(results) {
  all <- simulated_rows(results, "churn", "timed")
  rows <- ok_rows(all)
  rows <- rows[is.finite(rows$sim_ops_per_s), , drop = FALSE]
  list(rows = if (nrow(rows) > 0) pick_slice(rows) else rows, all = all)
}

#' The deepest quantile of malloc that some row has, by its name in SIM_QUANTILES; NA where there is none.
deepest_quantile <- function(rows) {
  has <- vapply(names(SIM_QUANTILES), function(part) any(is.finite(rows[[timed_column(part)]])), NA)
  if (any(has)) names(SIM_QUANTILES)[max(which(has))] else NA_character_
}

timed_column <- function(part, call = "malloc") paste0("sim_lat_", call, "_", part, "_ns")

#' "p99.9" of "p999".
quantile_text <- function(part) paste0("p", format(100 * SIM_QUANTILES[[part]]))

#' The quantile that is shown: p99.9 where it is there, else the deepest.
shown_quantile <- function(rows) if (any(is.finite(rows[[timed_column("p999")]]))) "p999" else deepest_quantile(rows)

#' What the panels show.
#' @return list of lists: column, scale, title, ylabel, log
timed_panels <- function(rows) {
  part <- shown_quantile(rows)
  c(list(list(column = "sim_ops_per_s", scale = 1e-6, title = "throughput", ylabel = "million operations a second",
              log = FALSE)),
    if (!is.na(part)) {
      list(list(column = timed_column(part), scale = 1, title = paste(quantile_text(part), "of a malloc"),
                ylabel = "simulated ns", log = TRUE))
    })
}

no_times <- function(all) {
  if (nrow(ok_rows(all)) > 0) "no row of timed mode has a simulated throughput"
  else why_no_rows(all, "churn in the simulated machine's timed mode")
}

figure_timed <- function(results, registry) {
  timed <- timed_rows(results)
  rows <- timed$rows
  if (nrow(rows) == 0) return(not_measured(no_times(timed$all)))
  allocators <- display_order(registry, unique(rows$allocator))
  x <- sort(unique(rows$threads))
  x_low <- min(x) / 1.2
  x_high <- max(x) * 1.2
  panels <- lapply(timed_panels(rows), timed_panel, rows = rows, allocators = allocators)
  text <- allocator_label(registry, allocators)
  colour <- registry$colour[linetype_of(registry, allocators)]
  labels <- lapply(panels, function(panel) {
    end <- share_of(panel$end_x, x_low, x_high, TRUE)
    keep <- is.finite(panel$end_y)
    c(sprintf("set title %s", gnuplot_string(panel$title)), sprintf("set ylabel %s", gnuplot_string(panel$ylabel)),
      if (panel$log) "set logscale y" else "unset logscale y", sprintf("set yrange [%g:%g]", panel$low, panel$high),
      if (panel$log) log_tics(c(panel$low, panel$high), "y") else "set ytics auto",
      end_labels(end[keep], share_of(panel$end_y[keep], panel$low, panel$high, panel$log), text[keep], colour[keep]))
  })
  names(labels) <- sprintf("timed-labels-%d.gp", seq_along(panels))
  launches <- unlist(lapply(panels, `[[`, "launches"))
  list(files = c(list(
    "timed.dat" = unlist(lapply(panels, `[[`, "lines")),
    "timed-vars.gp" = gp_vars(series = length(allocators), panels = length(panels), x_low = x_low, x_high = x_high,
                              lt_of = linetype_of(registry, allocators), label_share = label_share(text)),
    "timed-tics.gp" = sprintf("set xtics (%s)", paste(sprintf("'%d' %d", x, x), collapse = ", "))
  ), labels), launches = launches, caption = timed_caption(rows, panels, launches))
}

timed_caption <- function(rows, panels, launches) {
  overhead <- stats::median(rows$sim_lat_overhead_ns, na.rm = TRUE)
  titles <- vapply(panels, `[[`, "", "title")
  c(paste0("Shown: ", and_list(titles), "."), simulated_text(rows), "Each thread has a core; a second is a simulated one.",
    if (length(panels) > 1 && is.finite(overhead)) {
      sprintf("%s ns of a latency are what the call of an empty function takes.", number_text(overhead))
    },
    if (length(panels) < 2) "No quantile of a malloc has samples enough."
    else if (!grepl("p99.9 ", panels[[2]]$title, fixed = TRUE)) "Too few calls for a deeper quantile.",
    sprintf("Medians%s over %s a point.", if (any(vapply(panels, `[[`, NA, "intervals"))) " and intervals" else "",
            launches_phrase(launches)), unique(unlist(lapply(panels, `[[`, "bounds"))))
}

#' Data, limits and line ends of one panel.
timed_panel <- function(panel, rows, allocators) {
  by <- together_intervals(rows, c("allocator", "threads"), panel$column, panel$scale)
  own <- lapply(allocators, function(a) {
    one <- by[by$allocator == a & is.finite(by$value), ]
    one[order(one$threads), ]
  })
  last <- function(one, column) if (nrow(one) == 0) NA_real_ else one[[column]][nrow(one)]
  values <- c(by$value, by$low, by$high, by$all_low, by$all_high)
  limits <- if (panel$log) log_limits(values) else c(0, max(values, na.rm = TRUE) * 1.06)
  c(panel, list(
    lines = unlist(Map(function(one, a) {
      dat_block(one$threads * dodge(a, allocators), one$value, one$low, one$high, one$all_low, one$all_high)
    }, own, allocators)),
    low = limits[1], high = limits[2], end_x = vapply(own, last, 0, "threads"), end_y = vapply(own, last, 0, "value"),
    launches = by$launches[by$launches > 0], intervals = any(is.finite(by$low)), bounds = bounds_sentence(by)
  ))
}

#' The paragraph about simulated time, at the largest thread count.
timed_macros <- function(results, registry) {
  rows <- timed_rows(results)$rows
  if (nrow(rows) == 0) return(c(sayTimed = "Simulated time was not measured in these data."))
  rows <- most_threads(rows)
  by <- with_value(group_intervals(rows, "allocator", "sim_ops_per_s"))
  words <- function(row) value_words(row, "Mop/s", 1e-6)
  said <- leader_words(by, which.max(by$value), which.min(by$value), "highest", "lowest", "simulated throughput",
                       registry, words, ratio_among(rows, "sim_ops_per_s"))
  part <- shown_quantile(rows)
  tail <- if (!is.na(part)) {
    column <- timed_column(part)
    by <- with_value(group_intervals(rows, "allocator", column))
    paste0(" Of the ", quantile_text(part), " of a malloc, ",
           leader_words(by, which.min(by$value), which.max(by$value), "shortest", "longest", "one", registry,
                        function(row) value_words(row, "ns"), ratio_among(rows, column)), ".")
  }
  c(sayTimed = paste0("With ", plural(rows$threads[1], "thread"), ", each on a core, ", said,
                      " (Figure~\\ref{fig:timed}).", tail))
}
