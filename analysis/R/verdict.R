# Verdicts on published claims. The rules, in order:
#   no rows                                    -> not yet measured
#   rows, but the metric is empty              -> not testable here (why); not yet measured where more samples
#                                                 would do
#   fewer launches than an interval needs      -> not yet measured (n<6)
#   the interval holds 1                       -> not reproduced (a tie within the interval)
#   the other direction                        -> not reproduced
#   the published ratio inside the interval, and every condition met -> reproduced
#   else                                       -> direction only, with the conditions that differ
# A reduced or oversubscribed condition can therefore never yield "reproduced". With several live sets
# the weakest verdict stands.

VERDICTS <- c("reproduced", "direction only", "not reproduced", "contradicted by its own numbers",
              "not testable here", "not yet measured")
# From strong to weak, for taking the weakest over a sensitivity.
VERDICT_STRENGTH <- c("reproduced" = 1, "direction only" = 2, "not reproduced" = 3, "not testable here" = 4,
                      "not yet measured" = 5)

#' Verdict on a published ratio.
#' @param published the ratio as published
#' @param interval of ours, from paired_ratio; NULL where there are no rows
#' @param conditions character: what differs from the published conditions (empty: nothing)
#' @param unmeasured why the metric is empty on rows that exist; NA where it is not
#' @param word the verdict that goes with `unmeasured`
#' @return list(verdict, note)
verdict_ratio <- function(published, interval, conditions = character(), unmeasured = NA, word = "not testable here") {
  answer <- function(verdict, note = "") list(verdict = verdict, note = note)
  if (!is.na(unmeasured)) return(answer(word, unmeasured))
  if (is.null(interval) || interval$launches == 0) return(answer("not yet measured", "no paired launches"))
  if (is.na(interval$low)) {
    return(answer("not yet measured", paste0(plural(interval$launches, "paired launch", "paired launches"),
                                             ", fewer than ", MIN_LAUNCHES)))
  }
  differ <- if (length(conditions) > 0) paste(conditions, collapse = "; ") else ""
  if (interval$low <= 1 && interval$high >= 1) {
    return(answer("not reproduced", paste0(c("tie within the interval", differ[nzchar(differ)]), collapse = "; ")))
  }
  if ((interval$value > 1) != (published > 1)) {
    return(answer("not reproduced", paste0(c("the opposite direction", differ[nzchar(differ)]), collapse = "; ")))
  }
  inside <- interval$low <= published && published <= interval$high
  if (inside && length(conditions) == 0) return(answer("reproduced"))
  if (inside) return(answer("direction only", paste0("size agrees too, but ", differ)))
  answer("direction only", paste0(c("another size", differ[nzchar(differ)]), collapse = "; "))
}

#' The weakest of several verdicts.
weakest_verdict <- function(verdicts) verdicts[which.max(VERDICT_STRENGTH[verdicts])]

# With less CPU time each than this, more threads than CPUs hardly overlap: a thread is done within a few slices.
OVERLAP_MS <- 50

#' What differs between measured rows and the published conditions.
#' @param rows ok rows of the cell that is compared
#' @param wanted named list: threads, cycles, size_min, size_max, version.*
#' @param reading "thread" (cycles per thread) or "total"
#' @return character: one phrase a difference
differing_conditions <- function(rows, wanted, reading = "thread") {
  out <- character()
  add <- function(condition, text) if (isTRUE(condition)) out <<- c(out, text)
  wanted_number <- function(key) as.numeric(wanted[[key]])
  add(any(rows$oversubscribed %in% 1 | rows$threads > rows$cpus),
      paste0("oversubscribed: ", plural(max(rows$threads), "thread"), " on ", plural(min(rows$cpus), "CPU")))
  each_ms <- stats::median((rows$cpu_user_ns + rows$cpu_sys_ns) / rows$threads, na.rm = TRUE) / 1e6
  add(any(rows$threads > rows$cpus) && is.finite(each_ms) && each_ms < OVERLAP_MS,
      paste0("largely one thread after another: ", number_text(each_ms), " ms of CPU time each"))
  add(any(rows$threads != wanted_number("threads")),
      paste0(paste(unique(rows$threads), collapse = ", "), if (all(rows$threads == 1)) " thread" else " threads",
             " instead of ", wanted$threads))
  cycles <- if (reading == "total") rows$ops_per_thread * rows$threads else rows$ops_per_thread
  add(min(cycles) < 0.99 * wanted_number("cycles"),
      paste0("reduced: ", count_text(min(cycles)), " cycles"))
  add(any(rows$size_min != wanted_number("size_min") | rows$size_max != wanted_number("size_max")), "other sizes")
  add(any(rows$counters %in% "sim"), "on the simulated machine")
  for (allocator in sort(unique(rows$allocator))) {
    version <- wanted[[paste0("version.", allocator)]]
    have <- unique(stats::na.omit(rows$allocator_version[rows$allocator == allocator]))
    differs <- length(have) > 0 && !is.null(version) && !any(version_agrees(have, version))
    add(differs, paste0(allocator, " ", short_version(have[1]), " instead of ", version))
  }
  out
}

#' TRUE where a version text starts with the wanted version ("5.3.0-0-g54eaed1d" with "5.3.0").
version_agrees <- function(have, wanted) {
  have == wanted | startsWith(have, paste0(wanted, "-")) | startsWith(have, paste0(wanted, "."))
}

#' A version without its build suffix.
short_version <- function(version) sub("[-+_ ].*$", "", version)

# ---- the published table -------------------------------------------------------------------------

PUBLISHED_METRICS <- data.frame(
  claim = c("paper.ops", "paper.p999", "paper.l3", "paper.rss"),
  metric = c("throughput", "p99.9 latency", "L3 miss ratio", "RSS overhead"),
  unit = c("Mop/s", "ns", "%", "MB"),
  column = c("ops_per_s", "lat_p999_ns", "l3_miss_ratio", "rss_overhead_bytes"),
  scale = c(1e-6, 1, 100, 1e-6)
)
PUBLISHED_PAIR <- c("mimalloc", "jemalloc")
PUBLISHED_ALLOCATORS <- c("glibc", "jemalloc", "mimalloc")
SENSITIVITY_COLUMNS <- c("live_blocks", "lifetime_dist", "touch")
SENSITIVITY_WORDS <- c(live_blocks = "live set", lifetime_dist = "lifetimes", touch = "touching")

#' What of the sensitivity was not varied in the rows, in words.
unvaried <- function(rows) {
  same <- vapply(SENSITIVITY_COLUMNS, function(name) length(unique(rows[[name]])) < 2, TRUE)
  unname(SENSITIVITY_WORDS[SENSITIVITY_COLUMNS[same]])
}

#' Read the claims data of the paper.
#' @param dir the folder paper/
#' @return list(claims, values, conditions)
read_claims <- function(dir) {
  list(claims = read_csv(file.path(dir, "claims.csv"), c("id", "source", "metric", "unit", "statement", "conditions")),
       values = read_csv(file.path(dir, "claim_values.csv"), c("id", "allocator", "measurement", "low", "high")),
       conditions = read_csv(file.path(dir, "conditions.csv"), c("source", "key", "value")))
}

published_value <- function(claims, id, allocator) {
  v <- claims$values
  v$low[v$id == id & v$allocator == allocator & v$measurement == 1][1]
}

#' The published conditions of the contention paper as a named list.
published_conditions <- function(claims) {
  own <- claims$conditions[claims$conditions$source == "contention paper", ]
  stats::setNames(as.list(own$value), own$key)
}

#' The churn rows that stand beside the published table: the thread count nearest to the published one.
#' @return all statuses; zero rows where nothing was run
published_rows <- function(runs, wanted) {
  rows <- rows_of(runs, "churn", c("paper", "contention"))
  rows <- rbind(rows, runs[runs$kernel %in% "churn" & runs$sweep %in% "sensitivity" & !runs$folder %in% rows$folder, ])
  rows <- rows[rows$allocator %in% PUBLISHED_ALLOCATORS, , drop = FALSE]
  have <- ok_rows(rows)$threads
  if (length(have) == 0) have <- rows$threads
  nearest <- have[which.min(abs(log(have / as.numeric(wanted$threads))))]
  rows[rows$threads %in% nearest, , drop = FALSE]
}

#' The cells of those rows: one a reading of the cycle count and a setting of the sensitivity columns.
#' The plan says which count is a total; without a plan the smaller number of operations a thread is taken for the share
#' of a total.
published_cells <- function(rows) {
  if (nrow(rows) == 0) return(list())
  key <- cell_key(rows, setdiff(CELL_COLUMNS, "counters"))
  told <- any(grepl("in total$", rows$work))
  most <- max(rows$ops_per_thread)
  cells <- lapply(unique(key), function(one) {
    cell <- rows[key == one, , drop = FALSE]
    total <- grepl("in total$", cell$work[1]) || (!told && cell$ops_per_thread[1] < most && cell$threads[1] > 1)
    reading <- if (total) "total" else "thread"
    list(rows = cell, reading = reading, ops_per_thread = cell$ops_per_thread[1],
         setting = sensitivity_text(cell[1, ], rows))
  })
  cells[order(vapply(cells, function(cell) -cell$ops_per_thread, 0))]
}

#' "live_blocks 1000, touch line": the sensitivity columns that vary among rows.
sensitivity_text <- function(row, rows) {
  vary <- SENSITIVITY_COLUMNS[vapply(SENSITIVITY_COLUMNS, function(name) length(unique(rows[[name]])) > 1, TRUE)]
  if (length(vary) == 0) return("")
  value <- vapply(vary, function(name) as.character(row[[name]]), "")
  paste(gsub("_", " ", vary), value, collapse = ", ")
}

#' Why a metric is empty on rows that are ok; NA where it is measured or there are no ok rows.
unmeasured_reason <- function(rows, column) {
  rows <- ok_rows(rows)
  if (nrow(rows) == 0 || any(is.finite(rows[[column]]))) return(NA_character_)
  if (column == "l3_miss_ratio") {
    reason <- counters_reason(rows)
    return(if (is.na(reason)) "no cache counters" else shorten(reason, 120))
  }
  if (startsWith(column, "lat_")) {
    samples <- max(c(0, rows$lat_samples), na.rm = TRUE)
    return(paste0("too few latency samples a launch for this percentile (", count_text(samples), " at most)"))
  }
  "empty in every row"
}

#' Our ratio of a metric: paired by launch, or of the quantiles of the paired launches' merged histograms.
claim_ratio <- function(results, pair, column) {
  columns <- c("threads", setdiff(CELL_COLUMNS, "counters"))
  ratio <- allocator_ratio(pair, PUBLISHED_PAIR[1], PUBLISHED_PAIR[2], column, columns)
  if (ratio$launches > 0 || !column %in% names(LATENCY_P)) return(ratio)
  above <- pair[pair$allocator == PUBLISHED_PAIR[1], , drop = FALSE]
  below <- pair[pair$allocator == PUBLISHED_PAIR[2], , drop = FALSE]
  pairs <- pair_rows(above, below, columns)
  merged_interval(results, above$key[pairs$a], LATENCY_P[[column]], below$key[pairs$b])
}

#' One line of the comparison: a claim in one cell.
#' @return data.frame claim, metric, reading, setting, published, value, low, high, launches, verdict, note
compare_claim <- function(results, metric, cell, claims, wanted) {
  id <- metric$claim
  published <- published_value(claims, id, PUBLISHED_PAIR[1]) / published_value(claims, id, PUBLISHED_PAIR[2])
  rows <- ok_rows(cell$rows)
  pair <- rows[rows$allocator %in% PUBLISHED_PAIR, , drop = FALSE]
  ratio <- claim_ratio(results, pair, metric$column)
  conditions <- if (nrow(pair) > 0) differing_conditions(pair, wanted, cell$reading) else character()
  if (ratio$method == "merged") conditions <- c(conditions, "quantile of merged launches")
  latency <- startsWith(metric$column, "lat_")
  verdict <- verdict_ratio(published, ratio, conditions,
                           if (ratio$launches > 0) NA else unmeasured_reason(pair, metric$column),
                           if (latency) "not yet measured" else "not testable here")
  data.frame(claim = id, metric = metric$metric, reading = cell$reading, setting = cell$setting,
             published = published, value = ratio$value, low = ratio$low, high = ratio$high,
             launches = ratio$launches, verdict = verdict$verdict, note = verdict$note)
}

#' Compare the published table with the data.
#' @return list(rows, cells, details = a line a claim, reading and setting; verdicts = a line a claim;
#'   sensitivity = one sentence on what was varied)
compare_published <- function(results, claims) {
  wanted <- published_conditions(claims)
  rows <- published_rows(results$runs, wanted)
  cells <- published_cells(rows)
  details <- do.call(rbind, lapply(cells, function(cell) {
    do.call(rbind, lapply(seq_len(nrow(PUBLISHED_METRICS)), function(i) {
      compare_claim(results, PUBLISHED_METRICS[i, ], cell, claims, wanted)
    }))
  }))
  fixed <- unvaried(rows)
  verdicts <- do.call(rbind, lapply(seq_len(nrow(PUBLISHED_METRICS)), function(i) {
    claim_verdict(PUBLISHED_METRICS[i, ], details, claims, fixed)
  }))
  list(rows = rows, cells = cells, details = details, verdicts = verdicts, fixed = fixed,
       several = length(unique(vapply(cells, `[[`, "", "setting"))) > 1)
}

#' The verdict on a claim over all its readings and settings.
#' @param fixed which of live set, lifetimes and touching were not varied, in words; empty: all were
claim_verdict <- function(metric, details, claims, fixed) {
  own <- details[details$claim == metric$claim, , drop = FALSE]
  published <- published_value(claims, metric$claim, PUBLISHED_PAIR[1]) /
    published_value(claims, metric$claim, PUBLISHED_PAIR[2])
  if (is.null(own) || nrow(own) == 0) {
    return(data.frame(claim = metric$claim, metric = metric$metric, published = published, value = NA_real_,
                      low = NA_real_, high = NA_real_, launches = 0L, verdict = "not yet measured",
                      note = "no churn rows", depends = NA))
  }
  measured <- own$verdict %in% VERDICTS[1:3]
  missing <- if (any(measured) && !all(measured)) setdiff(own$reading[!measured], own$reading[measured])
  if (any(measured)) own <- own[measured, , drop = FALSE]
  word <- weakest_verdict(own$verdict)
  shown <- own[own$verdict == word, , drop = FALSE][1, ]
  note <- shown$note
  if (any(measured) && length(fixed) > 0) {
    if (word == "reproduced") word <- "direction only"
    note <- paste0(c(note[nzchar(note)], paste("sensitivity to", and_list(fixed), "was not measured")), collapse = "; ")
  }
  depends <- length(unique(own$verdict)) > 1
  if (depends) note <- paste0("depends on reading and setting, the weakest stands; ", note)
  if (length(missing) > 0) note <- paste0(note, "; not measured in the other reading")
  data.frame(claim = metric$claim, metric = metric$metric, published = published, value = shown$value,
             low = shown$low, high = shown$high, launches = shown$launches, verdict = word, note = note,
             depends = depends)
}
