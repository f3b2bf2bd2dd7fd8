# What the results section says in words: whole paragraphs, each worded for what the data hold. A name leads only where
# the intervals tell it from the others.

#' "117 [116, 118] Mop/s", "117 Mop/s, n<6".
value_words <- function(row, unit, scale = 1, overhead = NA) {
  columns <- c("value", "low", "high")
  row[columns] <- row[columns] * scale
  value <- if (is.na(overhead)) tex_number(row$value) else latency_tex(row$value, overhead)
  unit <- if (nzchar(unit)) paste0(" ", unit)
  if (is.na(row$low)) return(paste0(value, unit, ", ", few_tex(row)))
  paste0(value, " ", interval_tex(row), unit)
}

#' TRUE where the data tell two allocators apart.
#' @param a,b rows of group_intervals
#' @param ratio interval of a / b over paired launches, NULL where there are no pairs
separable <- function(a, b, ratio = NULL) {
  if (!is.null(ratio) && is.finite(ratio$low)) return(ratio$low > 1 || ratio$high < 1)
  isTRUE(a$low > b$high || a$high < b$low)
}

#' An allocator's label within a sentence, in LaTeX: quoted where it holds a comma.
allocator_name <- function(registry, allocator) {
  label <- tex_escape(allocator_label(registry, allocator))
  ifelse(grepl(",", label, fixed = TRUE), paste0("``", label, "''"), label)
}

#' Row numbers of the allocators that one cannot be told from, the nearest first.
#' @param by group_intervals by allocator; every value finite
#' @param ratio function(a, b): paired interval, or NULL
inseparable_from <- function(by, one, ratio) {
  others <- setdiff(seq_len(nrow(by)), one)
  same <- Filter(function(i) !separable(by[one, ], by[i, ], ratio(by$allocator[one], by$allocator[i])), others)
  as.integer(same[order(abs(by$value[same] - by$value[one]))])
}

#' How many comparisons hold together: those of two allocators with all others, or 1 where the launches are too few for that.
#' @param ratio function(a, b, m)
comparisons_together <- function(by, first, last, ratio) {
  m <- 2 * nrow(by) - 3 # the pair of both counts once
  pair <- ratio(by$allocator[first], by$allocator[last], m)
  if (is.null(pair) || !is.finite(pair$low)) 1 else m
}

#' "the highest rate is that of A (...), not separable from C; the lowest is that of B (...)".
#' Both are compared with all others. Those comparisons hold together (Bonferroni) where there are launches enough, else each by
#' itself, and the words say which.
#' @param first,last row numbers of those named; most, least: the words for them; what: the quantity
#' @param words function(row): its value in words
#' @param ratio function(a, b, m): paired interval, one of m that hold together, or NULL
leader_words <- function(by, first, last, most, least, what, registry, words, ratio = function(a, b, m) NULL) {
  name <- function(i) paste0(allocator_name(registry, by$allocator[i]), " (", words(by[i, ]), ")")
  if (nrow(by) == 1) return(paste0("only the ", what, " of ", name(1), " was measured"))
  m <- comparisons_together(by, first, last, ratio)
  same <- lapply(c(first, last), function(one) inseparable_from(by, one, function(a, b) ratio(a, b, m)))
  how <- if (m > 1) sprintf(" (all %d comparisons together at %s)", m, percent_tex(CONFIDENCE, 2))
         else if (nrow(by) > 2) " (each comparison by itself)"
  if (all(lengths(same) == nrow(by) - 1)) {
    return(paste0("no allocator leads or trails separably; the ", most, " ", what, " in the median is that of ", name(first),
                  ", the ", least, " that of ", name(last), how))
  }
  but <- function(i) {
    if (length(i) > 0) paste0(", not separable from ", and_list(allocator_name(registry, by$allocator[i])))
  }
  paste0("the ", most, " ", what, " is that of ", name(first), but(same[[1]]), "; the ", least, " is that of ", name(last),
         but(same[[2]]), how)
}

#' Rows of an interval table that have a value.
with_value <- function(by) if (is.null(by)) NULL else by[is.finite(by$value), , drop = FALSE]

#' Churn rows at the largest thread count with a CPU for every thread.
full_speed_rows <- function(rows) {
  rows <- ok_rows(rows)
  rows <- rows[rows$threads <= rows$cpus, , drop = FALSE]
  if (nrow(rows) > 0) rows <- rows[rows$threads == max(rows$threads), , drop = FALSE]
  rows
}

#' Paired ratios of a column among rows; NULL where a value is not positive, of which there is no ratio.
ratio_among <- function(rows, column) {
  function(a, b, m = 1) {
    values <- rows[[column]][rows$allocator %in% c(a, b)]
    if (any(values <= 0, na.rm = TRUE)) NULL else allocator_ratio(rows, a, b, column, together = m)
  }
}

throughput_paragraph <- function(results, registry, figure) {
  rows <- full_speed_rows(pick_slice(rows_of(results$runs, "churn", c("contention", "paper"))))
  by <- with_value(group_intervals(rows, "allocator", "ops_per_s"))
  shade <- if (isTRUE(figure$shaded)) {
    paste("To the right of the shaded edge in Figure~\\ref{fig:throughput} the curves say how an allocator bears being",
          "descheduled, not how it scales.")
  }
  if (is.null(by) || nrow(by) == 0) {
    return(paste(c("The random workload was not measured here with a CPU for every thread.", shade), collapse = " "))
  }
  words <- function(row) value_words(row, "Mop/s", 1e-6)
  said <- leader_words(by, which.max(by$value), which.min(by$value), "highest", "lowest",
                       "throughput of the random workload", registry, words, ratio_among(rows, "ops_per_s"))
  pair <- allocator_ratio(rows, PUBLISHED_PAIR[1], PUBLISHED_PAIR[2], "ops_per_s")
  paste(c(sprintf("At the largest measured thread count with a CPU for every thread, %s, %s.", count_text(rows$threads[1]), said),
          if (is.finite(pair$value)) {
            sprintf("Mimalloc over jemalloc is %s %s%s.", number_text(pair$value), interval_tex(pair),
                    if (isTRUE(pair$low <= 1 && pair$high >= 1)) ", a tie within the interval" else "")
          }, shade), collapse = " ")
}

latency_paragraph <- function(results, registry) {
  rows <- full_speed_rows(latency_rows(results$runs))
  by <- with_value(group_intervals(rows, "allocator", "lat_p99_ns"))
  if (is.null(by) || nrow(by) == 0) {
    return("No p99 of a malloc was measured here in enough samples with a CPU for every thread.")
  }
  overhead <- stats::median(rows$clock_overhead_ns, na.rm = TRUE)
  words <- function(row) value_words(row, "ns", overhead = overhead)
  said <- leader_words(by, which.min(by$value), which.max(by$value), "shortest", "longest", "p99 of a malloc",
                       registry, words, ratio_among(rows, "lat_p99_ns"))
  paste0("With ", plural(rows$threads[1], "thread"), ", ", said, " (Figure~\\ref{fig:latency}, Table~\\ref{tab:latency}). ",
         "What lies near the null kernel's curve is the clock's and the machine's, not the allocator's.")
}

bookkeeping_paragraph <- function(figure) {
  if (!is.null(figure$reason)) return("The bookkeeping by size, with nothing in the way, was not measured here.")
  "The bookkeeping by size, with nothing in the way, is in Figure~\\ref{fig:metadata}."
}

#' A ratio of shared over private lines, and what it means: slower, faster, or neither within the interval.
sharing_words <- function(row) {
  value <- paste0(number_text(row$value), if (is.na(row$low)) paste0(", ", few_tex(row)) else paste0(" ", interval_tex(row)))
  if (is.na(row$low)) return(value)
  paste0(value, if (row$low > 1) ": a slow-down" else if (row$high < 1) ": a speed-up" else ": no difference within the interval")
}

sharing_paragraph <- function(results, registry) {
  all <- with_value(false_sharing_ratios(results$runs))
  ratios <- smallest_object(all)
  said <- if (is.null(ratios) || nrow(ratios) == 0) {
    "What false sharing costs was not measured here."
  } else {
    sizes <- length(unique(all$object)) > 1
    parts <- vapply(unique(ratios$kernel), function(kernel) {
      own <- ratios[ratios$kernel == kernel, , drop = FALSE]
      paste0("In ", tex_escape(kernel), ", ",
             leader_words(own, which.max(own$value), which.min(own$value), "largest", "smallest", "ratio", registry,
                          sharing_words))
    }, "")
    paste0("The time of writes to shared lines is given over that of writes to private ones. ", paste(parts, collapse = ". "),
           " (Figure~\\ref{fig:falseshare}",
           if (sizes) "; other object sizes in Table~\\ref{tab:sharing}", ").")
  }
  remote <- if (any(ok_rows(results$runs)$kernel %in% "remote_free")) {
    "Blocks that another thread frees are in Table~\\ref{tab:remote}."
  }
  paste(c(said, remote), collapse = " ")
}

memory_paragraph <- function(results, registry) {
  rows <- ok_rows(rows_of(results$runs, "churn", c("paper", "contention")))
  rows <- rows[is.finite(rows$rss_overhead_bytes), , drop = FALSE]
  if (nrow(rows) == 0) return("Resident memory was not measured here.")
  rows <- pick_slice(rows[rows$threads == max(rows$threads), , drop = FALSE])
  by <- with_value(group_intervals(rows, "allocator", "rss_overhead_bytes"))
  said <- leader_words(by, which.min(by$value), which.max(by$value), "least", "most",
                       "resident memory beyond live bytes", registry, function(row) value_words(row, "MB", 1e-6),
                       ratio_among(rows, "rss_overhead_bytes"))
  paste0("With ", plural(rows$threads[1], "thread"), if (any(rows$threads > rows$cpus)) " (oversubscribed)", ", ", said,
         " (Figure~\\ref{fig:rss}).")
}

#' Macros of the results section.
finding_macros <- function(results, fit, registry) {
  c(sayThroughput = throughput_paragraph(results, registry, figure_throughput(results, registry)),
    sayLatency = latency_paragraph(results, registry),
    sayBookkeeping = bookkeeping_paragraph(figure_metadata(fit, registry, results)),
    saySharing = sharing_paragraph(results, registry), sayMemory = memory_paragraph(results, registry))
}
