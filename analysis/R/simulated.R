# Rows of the simulated machine: counts per operation (weave mode) and simulated times (timed mode), with intervals over
# launches. A launch is the replicate here, too: launches differ in the kernel's random numbers, in where memory lies
# and in how turns meet. They are of another machine: by them alone no condition of a published claim is met.

# Columns of runs.csv that are divided by operations, as COLUMN_per_op.
SIM_COUNTED <- c("sim_false_sharing", "sim_true_sharing", "sim_invalidations", "sim_cross_node", "sim_dram_local",
                 "sim_dram_remote", "l3_access")

# Metrics of timed mode, from metrics.csv: 1/s, ns and a count.
SIM_QUANTILES <- c(p50 = 0.5, p90 = 0.9, p99 = 0.99, p999 = 0.999, p9999 = 0.9999)
SIM_TIMES <- c("sim_ops_per_s", "sim_lat_samples", "sim_lat_overhead_ns",
               as.vector(outer(c("sim_lat_malloc", "sim_lat_free"), c(names(SIM_QUANTILES), "max"),
                               function(call, part) paste0(call, "_", part, "_ns"))))

SIM_SWEEP <- c(weave = "coherence", timed = "timed") # where a mode's numbers are looked for first

#' Simulated rows of a kernel from one folder, with SIM_COUNTED per operation and SIM_TIMES as columns.
#' @param results from read_results
#' @param mode weave or timed
#' @param sweep its folder is preferred
#' @return rows, failed ones included; those that were never started have no mode and are among them
simulated_rows <- function(results, kernel, mode = "weave", sweep = SIM_SWEEP[[mode]]) {
  rows <- rows_of(results$simulated[results$simulated$sim_mode %in% c(mode, NA), , drop = FALSE], kernel, sweep)
  for (column in SIM_COUNTED) rows[[paste0(column, "_per_op")]] <- rows[[column]] / rows$ops
  with_metrics(rows, results$metrics, SIM_TIMES)
}

#' Rows with metrics of metrics.csv as columns; NA where a row has none of that name.
with_metrics <- function(rows, metrics, names) {
  metrics <- metrics[metrics$name %in% names & metrics$key %in% rows$key, , drop = FALSE]
  for (name in names) {
    own <- metrics[metrics$name == name, , drop = FALSE]
    rows[[name]] <- suppressWarnings(as.numeric(own$value[match(rows$key, own$key)]))
  }
  rows
}

#' The interval of a metric on the simulated machine: of one allocator its median, of two the paired ratio of the first
#' over the second. Of several cells (live sets, say) the one with the most launches stands; `held` picks another.
#' @param metric a column: l3_miss_ratio, l3_miss_per_op, a name of SIM_TIMES, one of SIM_COUNTED with _per_op ...
#' @param allocators one name or two
#' @param held named list of columns and the values wanted
#' @return list(value, low, high, launches, method; row_ids = the launches behind it; machine = its name; reason = why
#'   there is no value, else NA)
simulated_interval <- function(results, metric, allocators, kernel = "churn", threads = 64, mode = "weave",
                               held = list()) {
  all <- simulated_rows(results, kernel, mode)
  held <- c(held, list(threads = threads, allocator = allocators))
  for (name in names(held)) all <- all[all[[name]] %in% held[[name]], , drop = FALSE]
  rows <- ok_rows(all)
  rows <- rows[is.finite(rows[[metric]]), , drop = FALSE]
  if (nrow(rows) == 0) {
    why <- if (nrow(ok_rows(all)) > 0) paste(metric, "is empty in every simulated row")
           else why_no_rows(all, paste("the", kernel, "kernel on the simulated machine"))
    return(simulated_answer(median_interval(numeric()), rows, why))
  }
  rows <- pick_slice(rows)
  if (length(allocators) == 1) return(simulated_answer(launch_interval(rows, rows[[metric]]), rows))
  side <- lapply(allocators, function(a) rows[rows$allocator == a & rows[[metric]] > 0, , drop = FALSE])
  pairs <- pair_rows(side[[1]], side[[2]], c("threads", CELL_COLUMNS))
  side <- list(side[[1]][pairs$a, ], side[[2]][pairs$b, ])
  simulated_answer(launch_ratio(side[[1]], side[[1]][[metric]], side[[2]][[metric]]), do.call(rbind, side),
                   if (nrow(pairs) == 0) "no pair of launches of which both counted some" else NA_character_)
}

simulated_answer <- function(interval, rows, reason = NA_character_) {
  c(as.list(interval), list(row_ids = rows$row_id, machine = simulated_machine(rows), reason = reason))
}

#' The name of the machine that was simulated, from the rows' parameters.
simulated_machine <- function(rows) {
  named <- grepl("(^| )machine=", rows$params)
  unique(sub(".*(^| )machine=([^ ]*).*", "\\2", rows$params[named]))
}

#' "Sweep coherence; simulated machine epyc-4x16; operations a thread: 100.": what makes a reduced run one is said.
simulated_text <- function(rows) {
  counts <- function(x) paste(count_text(sort(unique(stats::na.omit(x)))), collapse = ", ")
  machine <- simulated_machine(rows)
  live <- rows$live_blocks[rows$kernel %in% "churn"]
  total <- all(grepl("in total$", rows$work))
  ops <- if (total) as.numeric(sub(" .*", "", rows$work)) else rows$ops_per_thread
  parts <- c(paste("Sweep", source_text(rows)), paste(c("simulated machine", machine), collapse = " "),
             paste0("operations ", if (total) "in total: " else "a thread: ", counts(ops)),
             if (any(is.finite(live))) paste0("live blocks a thread in churn: ", counts(live)))
  paste0(tex_escape(paste(parts, collapse = "; ")), ".")
}

#' A value and its interval, small.
value_cell <- function(interval) {
  if (is.na(interval$value)) return("")
  paste0(tex_number(interval$value), " {\\footnotesize ", interval_tex(interval), "}")
}

#' Rows at their largest thread count.
most_threads <- function(rows) rows[rows$threads == max(rows$threads), , drop = FALSE]
