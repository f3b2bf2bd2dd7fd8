# The figures' data. Each figure_NAME(...) returns list(files = name -> lines, launches = counts behind the points,
# caption = the sentences after its title, in LaTeX) or, where nothing was measured, list(reason).

#' Nothing to draw.
not_measured <- function(reason) list(reason = paste0("not measured here: ", reason), launches = integer())

#' Why there are no ok rows, with the statuses of those that failed.
why_no_rows <- function(rows, what) {
  if (nrow(rows) == 0) return(paste0("no rows of ", what))
  paste0("no ok rows of ", what, " (", status_counts(rows), ")")
}

#' "3 crash, 1 timeout": failed rows by status.
status_counts <- function(rows) {
  counts <- table(factor(rows$status[rows$status != "ok"], STATUSES))
  counts <- counts[counts > 0]
  paste(counts, names(counts), collapse = ", ")
}

#' One block of a gnuplot data file; blocks are told apart by `index`. An empty block keeps its place.
dat_block <- function(...) {
  columns <- lapply(list(...), function(x) ifelse(is.na(x), "NaN", format(signif(x, 6), scientific = FALSE, trim = TRUE)))
  lines <- do.call(paste, columns)
  c(if (length(lines) == 0) do.call(paste, as.list(rep("NaN", length(columns)))) else lines, "", "")
}

#' gnuplot assignments: numbers, and arrays of numbers.
gp_vars <- function(...) {
  values <- list(...)
  unlist(lapply(names(values), function(name) {
    value <- format(as.numeric(values[[name]]), digits = 8, scientific = FALSE, trim = TRUE)
    if (length(value) == 1 && !endsWith(name, "_of")) return(paste(name, "=", value))
    sprintf("array %s[%d] = [%s]", name, length(value), paste(value, collapse = ", "))
  }))
}

#' Linetype numbers of allocators: their position in the registry, as in style.gp.
linetype_of <- function(registry, allocators) match(allocators, registry$section)

#' style.gp: one linetype an allocator.
style_gp <- function(registry) {
  c("# Generated from the allocator registry.",
    sprintf("set linetype %d lc rgb '%s' dt %d", seq_len(nrow(registry)), registry$colour,
            c(1, 2, 4, 5, 3)[(registry$dash - 1) %% 5 + 1]))
}

#' Move labels apart along one axis: at least `gap` between neighbours, near their places, within [low, high].
#' @param at wanted positions (any order)
#' @return positions in the same order
spread_labels <- function(at, gap, low = -Inf, high = Inf) {
  order <- order(at)
  placed <- pmin(pmax(at[order], low), high)
  for (pass in 1:200) {
    moved <- FALSE
    for (i in seq_along(placed)[-1]) {
      lack <- gap - (placed[i] - placed[i - 1])
      if (lack > 1e-9 * gap) {
        placed[i - 1] <- placed[i - 1] - lack / 2
        placed[i] <- placed[i] + lack / 2
        moved <- TRUE
      }
    }
    if (length(placed) > 0 && placed[1] < low) placed <- placed + (low - placed[1])
    if (length(placed) > 0 && placed[length(placed)] > high) placed <- placed + (high - placed[length(placed)])
    if (!moved) break
  }
  placed[order(order)]
}

# From which distance between a line's end and its label the two are connected: shares of the graph.
LEADER_FROM <- c(x = 0.08, y = 0.012)

#' gnuplot labels at the right of lines; a thin leader connects a label with the line it was moved from.
#' @param x,y ends of the lines, as shares 0..1 of the graph's width and height
#' @param text labels, colour hex colours
end_labels <- function(x, y, text, colour, gap = 0.055) {
  if (length(y) == 0) return(character())
  at <- spread_labels(y, gap, 0.01, 0.99)
  moved <- abs(at - y) > LEADER_FROM[["y"]] | x < 1 - LEADER_FROM[["x"]]
  c(sprintf("set label %s at graph 1.05, graph %.4f left front textcolor rgb '%s'", gnuplot_string(text), at, colour),
    sprintf("set arrow from graph %.4f, graph %.4f to graph 1.04, graph %.4f nohead front lc rgb '%s' lw 0.6 dt 3",
            x, y, at, colour)[moved])
}

#' Share of the graph's height of a value.
share_of <- function(value, low, high, log = FALSE) {
  if (log) (log(value) - log(low)) / (log(high) - log(low)) else (value - low) / (high - low)
}

#' Axis limits that hold all values and intervals, with some room; on a log axis whole 1-2-5 steps.
log_limits <- function(x) {
  x <- x[is.finite(x) & x > 0]
  steps <- as.vector(outer(c(1, 2, 5), 10^(-3:12)))
  c(max(steps[steps <= min(x)]), min(steps[steps >= max(x) * 1.05]))
}

#' Margin, in gnuplot's characters, that holds the longest of some labels.
label_width <- function(text) max(nchar(text), 4) * 1.08 + 4

#' Factor that sets a series aside on a log axis, so that intervals at one place do not cover each other.
dodge <- function(one, all, step = 1.014) step^(match(one, all) - (length(all) + 1) / 2)

#' The same as a share of the figure's width.
label_share <- function(text) max(nchar(text), 4) * 0.0105 + 0.035

#' Tics of a log axis at 1-2-5 steps within limits; every step where they are few, else the decades.
log_tics <- function(limits, axis) {
  steps <- as.vector(outer(c(1, 2, 5), 10^(-3:12)))
  steps <- steps[steps >= limits[1] * 0.999 & steps <= limits[2] * 1.001]
  if (length(steps) > 10) steps <- steps[log10(steps) == round(log10(steps))]
  sprintf("set %stics (%s)", axis, paste(sprintf("'%s' %g", formatC(steps, format = "fg", big.mark = ","), steps),
                                       collapse = ", "))
}

# ---- throughput ----------------------------------------------------------------------------------

figure_throughput <- function(results, registry) {
  all <- rows_of(results$runs, "churn", c("contention", "paper"))
  if (nrow(ok_rows(all)) == 0) return(not_measured(why_no_rows(all, "the churn kernel")))
  slice <- pick_slice(all)
  rows <- ok_rows(slice)
  allocators <- display_order(registry, unique(rows$allocator))
  by <- together_intervals(rows, c("allocator", "threads"), "ops_per_s", 1e-6)
  cpus <- min(rows$cpus)
  x <- sort(unique(by$threads))
  y_high <- max(c(by$value, by$high, by$all_high), na.rm = TRUE) * 1.06
  blocks <- lapply(allocators, function(a) {
    own <- by[by$allocator == a, ]
    own <- own[order(own$threads), ]
    dat_block(own$threads * dodge(a, allocators), own$value, own$low, own$high, own$all_low, own$all_high)
  })
  last <- vapply(allocators, function(a) with(by[by$allocator == a, ], value[which.max(threads)]), 0)
  x_low <- min(x) / 1.15
  x_high <- max(x) * 1.15
  end <- vapply(allocators, function(a) max(by$threads[by$allocator == a]), 0)
  labels <- end_labels(share_of(end, x_low, x_high, TRUE), share_of(last, 0, y_high), allocator_label(registry, allocators),
                       registry$colour[linetype_of(registry, allocators)])
  shade <- character()
  if (any(x > cpus)) {
    from <- if (any(x <= cpus)) sqrt(max(x[x <= cpus]) * min(x[x > cpus])) else x_low
    shade <- c(sprintf("set object rectangle from %g, graph 0 to graph 1, graph 1 behind fc rgb SHADE fs solid noborder", from),
               sprintf("set label %s at %g, graph 1.035 left textcolor rgb '#706a5a'",
                       gnuplot_string(paste("oversubscribed: more threads than the", plural(cpus, "CPU"))), from))
  }
  tics <- sprintf("set xtics (%s)", paste(sprintf("'%d' %d", x, x), collapse = ", "))
  list(files = list(
    "throughput.dat" = unlist(blocks),
    "throughput-vars.gp" = gp_vars(series = length(allocators), lt_of = linetype_of(registry, allocators),
                                   x_low = x_low, x_high = x_high, y_high = y_high,
                                   label_width = label_width(allocator_label(registry, allocators))),
    "throughput-labels.gp" = c(shade, tics, labels)
  ), launches = by$launches, failed = sum(slice$status != "ok"), shaded = length(shade) > 0,
  caption = throughput_caption(slice, by, length(shade) > 0))
}

throughput_caption <- function(slice, by, shaded) {
  failed <- slice[slice$status != "ok", , drop = FALSE]
  c(sample_text(slice),
    if (shaded) sprintf("Shaded: with more threads than the %s they take turns.", plural(max(slice$cpus), "CPU")),
    sprintf("Medians%s over %s a point.", with_intervals(by), launches_phrase(by$launches)), bounds_sentence(by),
    if (nrow(failed) > 0) sprintf("Left out: %s (%s).", plural(nrow(failed), "launch that failed", "launches that failed"),
                                  tex_escape(status_counts(failed))))
}

#' " and intervals" where some value has one.
with_intervals <- function(by) if (any(is.finite(by$low))) " and intervals" else ""

#' "Sweep paper; 16 to 64 B; ...": where rows come from and what was held fixed.
sample_text <- function(rows, ...) {
  held <- slice_text(ok_rows(rows))
  tex_escape(paste0("Sweep ", paste(c(source_text(rows), ..., held[nzchar(held)]), collapse = "; "), "."))
}

#' What was held fixed in a slice, in words.
slice_text <- function(rows) {
  one <- rows[1, ]
  part <- function(name, text) if (is.na(one[[name]])) NULL else paste0(text, one[[name]])
  size <- if (is.na(one$size_min)) NULL else if (one$size_min == one$size_max) paste(one$size_min, "B")
          else paste0(one$size_min, " to ", one$size_max, " B ", one$size_dist)
  work <- unique(rows$work)
  count <- count_text(as.numeric(sub(" .*", "", work[1])))
  paste(c(size, part("live_blocks", "live blocks a thread: "), part("lifetime_dist", "lifetimes: "),
          part("touch", "touch: "),
          if (length(work) == 1 && !is.na(work)) paste0("operations ", sub("^[0-9]+ ", "", work), ": ", count)),
        collapse = "; ")
}

# ---- latency -------------------------------------------------------------------------------------


#' The churn rows behind the latency figure and table: the slice with the most launches.
latency_rows <- function(runs) {
  rows <- rows_of(runs, "churn", c("latency", "contention", "paper"))
  pick_slice(rows)
}

#' Thread counts shown: the largest with a CPU each, and the largest of all.
latency_threads <- function(rows) {
  fits <- rows$threads[rows$threads <= rows$cpus]
  unique(c(if (length(fits) > 0) max(fits), max(rows$threads)))
}

figure_latency <- function(results, registry) {
  all <- latency_rows(results$runs)
  rows <- ok_rows(all)
  rows <- rows[rows$lat_samples %in% NA | rows$lat_samples > 0, , drop = FALSE]
  if (nrow(rows) == 0) return(not_measured(why_no_rows(all, "the churn kernel with a latency pass")))
  threads <- latency_threads(rows)
  null_all <- ok_rows(rows_of(results$runs, "null", c(all$folder[1], "latency", "contention", "paper")))
  allocators <- display_order(registry, unique(rows$allocator))
  panels <- lapply(threads, function(n) {
    latency_panel(results, rows[rows$threads == n, ], allocators, null_all[null_all$threads == n, ], n)
  })
  values <- unlist(lapply(panels, function(p) lapply(c(p$curves, list(p$null)), `[[`, "ns")))
  if (!any(is.finite(values))) {
    return(not_measured("no latency histogram has enough samples for any quantile"))
  }
  bars <- unlist(lapply(panels, function(p) lapply(p$bars, function(b) c(b$low, b$high))))
  limits <- log_limits(c(values, bars))
  labels <- lapply(panels, latency_labels, allocators = allocators, registry = registry, limits = limits)
  names(labels) <- sprintf("latency-labels-%d.gp", seq_along(panels))
  list(files = c(list(
    "latency.dat" = unlist(lapply(panels, function(p) lapply(c(p$curves, list(p$null)), function(c) dat_block(c$x, c$ns)))),
    "latency-bars.dat" = unlist(lapply(panels, function(p) lapply(p$bars, function(b) dat_block(b$x, b$value, b$low, b$high)))),
    "latency-ytics.gp" = log_tics(limits, "y"),
    "latency-vars.gp" = gp_vars(series = length(allocators), panels = length(panels),
                                lt_of = linetype_of(registry, allocators), y_low = limits[1], y_high = limits[2],
                                label_share = label_share(allocator_label(registry, allocators)))
  ), labels), launches = unlist(lapply(panels, `[[`, "launches")),
  caption = latency_caption(rows, panels, any(grepl("rectangle", unlist(labels)))))
}

latency_caption <- function(rows, panels, shaded) {
  overhead <- number_text(stats::median(rows$clock_overhead_ns, na.rm = TRUE))
  bars <- do.call(rbind, lapply(panels, function(p) do.call(rbind, p$bars)))
  null <- unlist(lapply(panels, function(p) p$null$ns))
  c(sample_text(rows),
    sprintf("Curves: histograms merged over %s.", launches_phrase(unlist(lapply(panels, `[[`, "launches")))),
    if (any(is.finite(bars$value))) {
      sprintf("Points%s: medians of the launches' own quantiles%s.", if (any(is.finite(bars$low))) " and bars" else "",
              if (any(is.finite(bars$low))) " with intervals" else "")
    },
    if (!is.na(overhead)) sprintf("Median clock overhead: %s ns%s.", overhead,
                                  if (shaded) "; inside the shade quantiles are upper bounds" else ""),
    if (any(is.finite(null))) "Dashed: the null kernel.")
}

#' Curves of one thread count.
latency_panel <- function(results, rows, allocators, null, n) {
  x <- -log10(1 - tail_points())
  curve <- function(launches) {
    merged <- merge_hist(read_hist(results, launches$key, "malloc"))
    list(x = x, ns = hist_quantile(merged, tail_points()))
  }
  by_allocator <- lapply(allocators, function(a) rows[rows$allocator == a, , drop = FALSE])
  bars <- lapply(by_allocator, function(own) {
    do.call(rbind, lapply(names(LATENCY_P), function(column) {
      cbind(x = -log10(1 - LATENCY_P[[column]]), launch_interval(own, own[[column]]))
    }))
  })
  list(n = n, oversubscribed = any(rows$threads > rows$cpus), curves = lapply(by_allocator, curve), bars = bars,
       null = curve(null), overhead = stats::median(rows$clock_overhead_ns, na.rm = TRUE),
       launches = vapply(by_allocator, nrow, 0L))
}

# Left end of a latency panel: its axis is -log10(1 - p).
LATENCY_X_LOW <- 0.15

#' Right end of a latency panel: the deepest percentile that some allocator has.
latency_x_high <- function(panel) {
  deepest <- function(one, y) max(c(1.05, one$x[is.finite(y)]))
  max(vapply(panel$curves, function(one) deepest(one, one$ns), 0),
      vapply(panel$bars, function(one) deepest(one, one$value), 0)) + 0.05
}

latency_labels <- function(panel, allocators, registry, limits) {
  x_high <- latency_x_high(panel)
  ends <- vapply(c(panel$curves, list(panel$null)), function(one) {
    seen <- which(is.finite(one$ns) & one$x <= x_high)
    if (length(seen) == 0) c(NA_real_, NA_real_) else c(one$x[max(seen)], one$ns[max(seen)])
  }, c(0, 0))
  keep <- is.finite(ends[2, ])
  empty <- !any(is.finite(unlist(lapply(c(panel$curves, panel$bars), function(one) c(one$ns, one$value)))))
  text <- c(allocator_label(registry, allocators), "null")[keep]
  colour <- c(registry$colour[linetype_of(registry, allocators)], NULL_COLOUR)[keep]
  title <- sprintf("%d thread%s%s", panel$n, if (panel$n == 1) "" else "s",
                   if (panel$oversubscribed) ", oversubscribed" else "")
  bound <- OVERHEAD_FACTOR * panel$overhead
  c(sprintf("set title %s", gnuplot_string(title)),
    sprintf("set xrange [%g:%g]", LATENCY_X_LOW, x_high),
    if (empty) sprintf("set label %s at graph 0.5, graph 0.5 center front textcolor rgb '#202020'",
                       gnuplot_string(sprintf("no quantile has %d samples beyond it", SAMPLES_BEYOND))),
    if (is.finite(bound) && bound > limits[1]) {
      sprintf("set object rectangle from graph 0, first %g to graph 1, first %g behind fc rgb SHADE fs solid noborder",
              limits[1], min(bound, limits[2]))
    },
    end_labels(share_of(ends[1, keep], LATENCY_X_LOW, x_high), share_of(ends[2, keep], limits[1], limits[2], TRUE),
               text, colour))
}

# ---- T_metadata by size --------------------------------------------------------------------------

#' The variants a size panel shows, in their order.
metadata_variants <- function(own) {
  variants <- unique(c(intersect(c("pair", "lifo", "fifo"), own$variant), own$variant))
  variants[seq_len(min(3, length(variants)))]
}

#' TRUE for the rows of T_metadata whose system time was split off: fit.csv has their T_os.
os_apart <- function(own, fit) {
  os <- fit[fit$term == "T_os" & is.finite(fit$size) & is.finite(fit$value), , drop = FALSE]
  columns <- c("allocator", "variant", "size")
  cell_key(own, columns) %in% cell_key(os, columns)
}

figure_metadata <- function(fit, registry, results) {
  own <- fit$fit[fit$fit$term == "T_metadata" & is.finite(fit$fit$value), , drop = FALSE]
  if (nrow(own) == 0) return(not_measured("no ok single-thread rows of the fastpath kernel"))
  own$variant[is.na(own$variant)] <- ""
  own$apart <- os_apart(own, fit$fit)
  variants <- metadata_variants(own)
  own <- own[own$variant %in% variants, ]
  allocators <- display_order(registry, unique(own$allocator))
  limits <- log_limits(c(own$value, own$low, own$high))
  pick <- function(v, a) {
    one <- own[own$variant == v & own$allocator == a, ]
    one[order(one$size), ]
  }
  blocks <- lapply(variants, function(v) {
    lapply(allocators, function(a) {
      one <- pick(v, a)
      dat_block(one$size * dodge(a, allocators, 1.05), one$value, one$low, one$high, as.numeric(one$apart))
    })
  })
  sizes <- sort(unique(own$size))
  # Labels stand right of the last panel; an allocator without a line in it says which panel it is in.
  ends <- do.call(rbind, lapply(allocators, function(a) {
    v <- variants[max(which(variants %in% own$variant[own$allocator == a]))]
    one <- pick(v, a)
    cbind(one[nrow(one), c("size", "value")], variant = v)
  }))
  elsewhere <- ends$variant != variants[length(variants)]
  ends$text <- paste0(allocator_label(registry, allocators), ifelse(elsewhere, paste0(" (", ends$variant, ")"), ""))
  ends$x <- ifelse(elsewhere, 1, share_of(ends$size, min(sizes) / 1.4, max(sizes) * 1.4, TRUE))
  labels <- lapply(variants, function(v) sprintf("set title %s", gnuplot_string(v)))
  labels[[length(variants)]] <- c(labels[[length(variants)]],
                                  end_labels(ends$x, share_of(ends$value, limits[1], limits[2], TRUE), ends$text,
                                             registry$colour[linetype_of(registry, allocators)]))
  names(labels) <- sprintf("metadata-labels-%d.gp", seq_along(variants))
  list(files = c(list(
    "metadata.dat" = unlist(blocks),
    "metadata-vars.gp" = gp_vars(series = length(allocators), panels = length(variants), x_low = min(sizes) / 1.4,
                                 x_high = max(sizes) * 1.4, y_low = limits[1], y_high = limits[2],
                                 lt_of = linetype_of(registry, allocators),
                                 label_share = label_share(ends$text)),
    "metadata-tics.gp" = size_tics(sizes), "metadata-ytics.gp" = log_tics(limits, "y")
  ), labels), launches = own$launches, caption = metadata_caption(own, fit$fit, registry, metadata_rows(results$runs)))
}

metadata_caption <- function(own, fit, registry, rows) {
  heap <- unique(stats::na.omit(rows$heap_state))
  shown <- c(pair = "pair: each block freed at once", lifo = "lifo: batches freed newest first",
             fifo = "fifo: batches freed oldest first")
  shown <- shown[intersect(names(shown), own$variant)]
  floor <- paste(OS_RESOLVED_NS / 1e6, "ms")
  system <- if (all(own$apart)) "System time is left out."
            else if (!any(own$apart)) paste0("System time is inside every point (hollow): splitting it off takes passes of ",
                                             floor, ".")
            else paste0("System time is left out at full points; at hollow ones (", sum(!own$apart), " of ", nrow(own),
                        ") it is inside, since their passes were under ", floor, ", too short to split it off.")
  c(tex_escape(paste0("Sweep ", own$source_sweep[1], if (length(heap) > 0) paste0("; heap state ", and_list(heap)), ".")),
    "The loop is included.", system, if (length(shown) > 0) paste0("Panels: ", paste(shown, collapse = "; "), "."),
    sprintf("Medians%s over %s a point.", with_intervals(own), launches_phrase(own$launches)),
    bump_sentence(own, fit, registry))
}

FLOOR_ALLOCATOR <- "bump"

#' Where bump, meant as the floor, lies above another allocator, and why; NULL where it does not.
bump_sentence <- function(own, fit, registry) {
  bump <- own[own$allocator == FLOOR_ALLOCATOR, , drop = FALSE]
  over <- lapply(seq_len(nrow(bump)), function(i) {
    others <- own[own$allocator != FLOOR_ALLOCATOR & own$variant == bump$variant[i] & own$size == bump$size[i], , drop = FALSE]
    apart <- ifelse(is.finite(bump$low[i]) & is.finite(others$high), bump$low[i] > others$high, bump$value[i] > others$value)
    others$allocator[apart]
  })
  above <- bump[lengths(over) > 0, , drop = FALSE]
  if (nrow(above) == 0) return(NULL)
  where <- vapply(unique(above$variant), function(v) {
    sizes <- range(above$size[above$variant == v])
    paste0(if (nzchar(v)) paste0(v, ", "), if (sizes[1] == sizes[2]) sizes[1] else paste(sizes, collapse = " to "), " B")
  }, "")
  faults <- fit[fit$term == "faults" & is.finite(fit$size) & fit$allocator == FLOOR_ALLOCATOR, , drop = FALSE]
  columns <- c("variant", "size")
  most <- max(c(0, faults$value[cell_key(faults, columns) %in% cell_key(above, columns)]), na.rm = TRUE)
  label <- allocator_name(registry, FLOOR_ALLOCATOR)
  why <- if (most == 0) "its blocks are never used again, so each is memory that no cache holds"
         else if (all(above$apart)) "each block is fresh memory, and what its page faults cost outside system time is inside"
         else "each block is fresh memory, and its page faults are inside"
  paste0(label, ", which never frees, is no floor where it lies above another allocator's time (",
         tex_escape(paste(where, collapse = "; ")), "; above ",
         and_list(allocator_name(registry, display_order(registry, unique(unlist(over))))), " somewhere): ", why,
         if (most > 0) paste0(" (up to ", number_text(most), " faults an operation)"), ".")
}

#' Tics of a size axis: at most six, in B, KiB or MiB.
size_tics <- function(sizes) {
  powers <- 2^seq(floor(log2(min(sizes))), ceiling(log2(max(sizes))))
  powers <- powers[seq(1, length(powers), by = max(1, ceiling(length(powers) / 6)))]
  text <- ifelse(powers >= 2^20, paste0(powers / 2^20, "M"), ifelse(powers >= 1024, paste0(powers / 1024, "K"), powers))
  sprintf("set xtics (%s)", paste(sprintf("'%s' %d", text, powers), collapse = ", "))
}

# ---- false sharing -------------------------------------------------------------------------------

FALSE_KERNELS <- c("false_active", "false_passive")

#' Paired shared/private ratios of time an operation, at the largest thread count with a CPU for every thread.
#' @param together how many of them are to hold at once
#' @return data.frame kernel, object, allocator, threads, oversubscribed, source, value, low, high, launches; NULL
#'   without rows
false_sharing_ratios <- function(runs, together = 1) {
  do.call(rbind, lapply(FALSE_KERNELS, function(kernel) {
    all <- rows_of(runs, kernel, "falseshare")
    rows <- ok_rows(all)
    rows <- rows[rows$threads > 1, , drop = FALSE]
    if (nrow(rows) == 0) return(NULL)
    fits <- rows$threads <= rows$cpus
    n <- if (any(fits)) max(rows$threads[fits]) else min(rows$threads)
    rows <- rows[rows$threads == n, , drop = FALSE]
    rows$object <- param_number(rows, "object")
    groups <- split(rows, list(rows$allocator, ifelse(is.na(rows$object), 0, rows$object)), drop = TRUE)
    do.call(rbind, lapply(unname(groups), function(own) {
      own <- pick_slice(own, "variant")
      shared <- own[own$variant %in% "shared", , drop = FALSE]
      private <- own[own$variant %in% "private", , drop = FALSE]
      pairs <- pair_rows(shared, private, setdiff(CELL_COLUMNS, "variant"))
      ratio <- launch_ratio(shared[pairs$a, , drop = FALSE], shared$ns_per_op[pairs$a], private$ns_per_op[pairs$b],
                            together = together)
      cbind(data.frame(kernel = kernel, object = own$object[1], allocator = own$allocator[1], threads = n,
                       oversubscribed = !any(fits), source = source_text(own)), ratio)
    }))
  }))
}

#' The ratios of the smallest object: many of them fit a line.
smallest_object <- function(ratios) {
  if (is.null(ratios) || all(is.na(ratios$object))) return(ratios)
  ratios[ratios$object %in% min(ratios$object, na.rm = TRUE), , drop = FALSE]
}

figure_falseshare <- function(results, registry) {
  ratios <- smallest_object(false_sharing_ratios(results$runs))
  ratios <- ratios[is.finite(ratios$value), , drop = FALSE]
  if (is.null(ratios) || nrow(ratios) == 0) {
    return(not_measured(why_no_rows(results$runs[results$runs$kernel %in% FALSE_KERNELS, ],
                                    "the false-sharing kernels in pairs of shared and private")))
  }
  kernels <- intersect(FALSE_KERNELS, ratios$kernel)
  allocators <- display_order(registry, unique(ratios$allocator))
  limits <- log_limits(c(ratios$value, ratios$low, ratios$high, 0.8, 1.2))
  blocks <- lapply(kernels, function(k) {
    own <- ratios[ratios$kernel == k, ]
    colour <- registry$colour[linetype_of(registry, own$allocator)]
    lines <- dat_block(match(own$allocator, allocators), own$value, ifelse(is.na(own$low), own$value, own$low),
                       ifelse(is.na(own$high), own$value, own$high),
                       strtoi(sub("#", "", colour), 16L))
    lines
  })
  labels <- lapply(seq_along(kernels), function(k) {
    n <- ratios$threads[ratios$kernel == kernels[k]][1]
    over <- ratios$oversubscribed[ratios$kernel == kernels[k]][1]
    c(sprintf("set title %s", gnuplot_string(sprintf("%s, %s%s", kernels[k], plural(n, "thread"),
                                                     if (over) " (oversubscribed)" else ""))),
      row_tics(if (k == 1) allocator_label(registry, allocators) else rep("", length(allocators))))
  })
  names(labels) <- sprintf("falseshare-labels-%d.gp", seq_along(kernels))
  list(files = c(list(
    "falseshare.dat" = unlist(blocks),
    "falseshare-vars.gp" = gp_vars(rows = length(allocators), panels = length(kernels), x_low = limits[1],
                                   x_high = limits[2], label_share = label_share(allocator_label(registry, allocators))),
    "falseshare-tics.gp" = log_tics(limits, "x")
  ), labels), launches = ratios$launches,
  caption = c(tex_escape(paste0("Sweep ", and_list(unique(ratios$source)),
                                if (!is.na(ratios$object[1])) paste0("; objects of ", ratios$object[1], " B"), ".")),
              "The same allocations with writes to the blocks, over writes to private lines.",
              if (any(is.finite(ratios$low))) "Each interval is by itself; Table~\\ref{tab:sharing} says which hold together.",
              sprintf("Paired ratios%s over %s.", with_intervals(ratios),
                      launches_phrase(ratios$launches, "pair of launches", "pairs of launches"))))
}

#' y tics that name rows 1..n.
row_tics <- function(text) {
  sprintf("set ytics (%s)", paste(sprintf("%s %d", gnuplot_tic(text), seq_along(text)), collapse = ", "))
}

# ---- RSS -----------------------------------------------------------------------------------------

#' Overhead by allocator in the cell that stands beside the published table.
rss_intervals <- function(rows) {
  parts <- lapply(unique(rows$allocator), function(a) {
    own <- rows[rows$allocator == a, , drop = FALSE]
    cbind(allocator = a, internal = stats::median(own$internal_bytes, na.rm = TRUE),
          launch_interval(own, own$rss_overhead_bytes))
  })
  do.call(rbind, parts)
}

figure_rss <- function(results, registry) {
  all <- rows_of(results$runs, "churn", c("paper", "contention"))
  rows <- ok_rows(all)
  rows <- rows[is.finite(rows$rss_overhead_bytes), , drop = FALSE]
  if (nrow(rows) == 0) return(not_measured(why_no_rows(all, "the churn kernel with a memory pass")))
  rows <- pick_slice(rows[rows$threads == max(rows$threads), , drop = FALSE])
  by <- rss_intervals(rows)
  allocators <- display_order(registry, by$allocator)
  by <- by[match(allocators, by$allocator), ]
  mb <- 1e-6
  values <- c(by$value, by$low, by$high, by$internal) * mb
  span <- range(c(0, values), na.rm = TRUE)
  room <- 0.06 * diff(span)
  over <- any(rows$threads > rows$cpus)
  list(files = list(
    "rss.dat" = dat_block(seq_along(allocators), by$internal * mb, by$value * mb,
                          ifelse(is.na(by$low), by$value, by$low) * mb,
                          ifelse(is.na(by$high), by$value, by$high) * mb),
    "rss-vars.gp" = gp_vars(rows = length(allocators), x_low = span[1] - if (span[1] < 0) room else 0,
                            x_high = span[2] + room,
                            label_width = label_width(allocator_label(registry, allocators))),
    "rss-labels.gp" = row_tics(allocator_label(registry, allocators))
  ), launches = by$launches,
  caption = c(sample_text(rows, paste0(plural(rows$threads[1], "thread"), ", ",
                                       if (over) "oversubscribed" else "a CPU for every thread")),
              sprintf("Medians over %s a bar%s.", launches_phrase(by$launches),
                      if (any(is.finite(by$low))) ", interval of the total" else "")))
}

# ---- c2c -----------------------------------------------------------------------------------------

#' Median over launches of each CPU pair and state.
c2c_medians <- function(results) {
  matrix <- results$matrix
  if (is.null(matrix)) return(NULL)
  keys <- ok_rows(results$runs)$key
  matrix <- matrix[matrix$key %in% keys & is.finite(matrix$ns), , drop = FALSE]
  if (nrow(matrix) == 0) return(NULL)
  stats::aggregate(cbind(ns = ns) ~ from_cpu + to_cpu + state, data = matrix, FUN = stats::median)
}

figure_c2c <- function(results, registry) {
  medians <- c2c_medians(results)
  if (is.null(medians)) {
    return(not_measured(why_no_rows(results$runs[results$runs$kernel %in% "c2c", ], "the c2c kernel")))
  }
  cpus <- sort(unique(c(medians$from_cpu, medians$to_cpu)))
  states <- intersect(c("modified", "exclusive", "shared", "pingpong"), medians$state)
  grid <- expand.grid(to = cpus, from = cpus)
  blocks <- lapply(states, function(state) {
    own <- medians[medians$state == state, ]
    ns <- own$ns[match(paste(grid$from, grid$to), paste(own$from_cpu, own$to_cpu))]
    dat_block(match(grid$to, cpus) - 1, match(grid$from, cpus) - 1, ns)
  })
  high <- max(medians$ns) * 1.05
  labels <- lapply(states, function(state) {
    own <- medians[medians$state == state, ]
    numbers <- if (length(cpus) <= 8) {
      sprintf("set label %s at first %d, %d center front textcolor rgb '%s'", gnuplot_string(number_text(own$ns)),
              match(own$to_cpu, cpus) - 1, match(own$from_cpu, cpus) - 1,
              ifelse(own$ns > 0.55 * high, "#ffffff", "#202020"))
    }
    c(sprintf("set title %s", gnuplot_string(state)), numbers)
  })
  names(labels) <- sprintf("c2c-labels-%d.gp", seq_along(states))
  step <- ceiling(length(cpus) / 16)
  shown <- cpus[seq(1, length(cpus), by = step)]
  places <- paste(sprintf("'%d' %d", shown, match(shown, cpus) - 1), collapse = ", ")
  matrix <- results$matrix[results$matrix$key %in% ok_rows(results$runs)$key, ]
  list(files = c(list(
    "c2c.dat" = unlist(blocks),
    "c2c-vars.gp" = gp_vars(panels = length(states), cpus = length(cpus), c_high = high),
    "c2c-tics.gp" = c(sprintf("set xtics (%s)", places), sprintf("set ytics (%s)", places))
  ), labels), launches = length(unique(matrix$key)), caption = c2c_caption(matrix, medians, results$runs))
}

c2c_caption <- function(matrix, medians, runs) {
  hand <- medians[medians$state == "pingpong", , drop = FALSE]
  c(tex_escape(paste0("Sweep ", source_text(runs[runs$folder %in% sub("/[^/]*$", "", matrix$key[1]), , drop = FALSE]), ".")),
    sprintf("Medians over %s.", launches_phrase(length(unique(matrix$key)))),
    if (nrow(hand) > 0 && !any(hand$from_cpu > hand$to_cpu)) {
      paste("Pingpong hands the line there and back, one number for a pair of CPUs: its lower triangle repeats",
            "the upper one and stays empty.")
    })
}

# ---- the model -----------------------------------------------------------------------------------

MODEL_CLIP <- 6 # bars beyond this multiple of the median bar end at the frame, with their number beside

figure_model <- function(fit, registry) {
  model <- fit$model
  model <- model[is.finite(model$measured), , drop = FALSE]
  if (is.null(model) || nrow(model) == 0) return(not_measured("no ok churn rows with a CPU for every thread"))
  allocators <- display_order(registry, unique(model$allocator))
  model <- model[order(match(model$allocator, allocators), model$n), ]
  zero <- function(x) ifelse(is.na(x), 0, x)
  terms <- cbind(zero(model$loop), zero(model$metadata), zero(model$os), zero(model$gap), zero(model$residual))
  # Where a term is not identifiable, what the known ones leave of the measured time belongs to no term.
  unknown <- is.na(model$metadata) | is.na(model$gap) | is.na(model$residual)
  not_split <- ifelse(unknown, model$measured - rowSums(terms), 0)
  edges <- matrix(apply(cbind(0, terms[, 1:3, drop = FALSE], not_split, terms[, 4:5, drop = FALSE]), 1, cumsum), nrow = 7)
  all_high <- pmax(edges[7, ], model$measured, zero(model$high))
  high <- min(max(all_high), MODEL_CLIP * stats::median(all_high)) * 1.05
  low <- min(0, edges, na.rm = TRUE)
  text <- sprintf("%s, %d", allocator_label(registry, model$allocator), model$n)
  clipped <- which(model$measured > high)
  edges <- pmin(edges, high)
  beyond <- sprintf("set label %s at graph 1.01, first %d left front textcolor rgb '#202020'",
                    gnuplot_string(paste("to", number_text(model$measured[clipped]))), clipped)
  list(files = list(
    "model.dat" = dat_block(seq_len(nrow(model)), edges[1, ], edges[2, ], edges[3, ], edges[4, ], edges[5, ], edges[6, ],
                            edges[7, ], model$measured, ifelse(is.na(model$low), model$measured, model$low),
                            ifelse(is.na(model$high), model$measured, model$high)),
    "model-vars.gp" = gp_vars(rows = nrow(model), x_low = low, x_high = high, label_width = label_width(text),
                             not_split = as.numeric(any(unknown))),
    "model-labels.gp" = c(row_tics(text), if (length(clipped) > 0) beyond)
  ), launches = model$launches, caption = model_caption(model, unknown, edges))
}

model_caption <- function(model, unknown, edges) {
  c("A bar an allocator and thread count; a number behind the name is that of its threads.",
    if (any(diff(edges) < 0)) "A negative term runs backwards.",
    if (any(unknown)) "Not split: measured time that these data cannot divide among the terms.",
    sprintf("Points%s: measured, over %s.", with_intervals(model), launches_phrase(model$launches)))
}

# ---- drawing -------------------------------------------------------------------------------------

#' Data of every figure.
all_figures <- function(results, fit, registry) {
  list(throughput = figure_throughput(results, registry), latency = figure_latency(results, registry),
       metadata = figure_metadata(fit, registry, results), falseshare = figure_falseshare(results, registry),
       rss = figure_rss(results, registry), c2c = figure_c2c(results, registry), model = figure_model(fit, registry),
       predicted = figure_predicted(fit, registry), decomposed = figure_decomposed(fit, registry),
       coherence = figure_coherence(results, registry), timed = figure_timed(results, registry),
       replay = figure_replay(results, registry))
}

#' The LaTeX of a figure's body: the drawing, or why there is none.
figure_tex <- function(name, figure) {
  if (is.null(figure$reason)) return(sprintf("\\includegraphics[width=\\linewidth]{generated/%s.pdf}", name))
  sprintf("\\fbox{\\parbox{0.9\\linewidth}{\\centering %s}}", tex_escape(figure$reason))
}

#' "Throughput" of "throughput", for macro names.
macro_part <- function(name) {
  name <- gsub("2", "Two", name, fixed = TRUE)
  gsub("(^|(?<=Two))([a-z])", "\\U\\2", name, perl = TRUE)
}

# What each figure shows, the beginning of its caption.
FIGURE_TITLES <- c(throughput = "Throughput of the random workload by threads", latency = "Latency of one malloc by percentile",
                   metadata = "$T_{\\mathrm{metadata}}$: time of a malloc and a free by size on one thread",
                   falseshare = "Slow-down by false sharing",
                   rss = "Resident memory beyond live bytes and harness",
                   c2c = "One cache line fetched from another CPU, in ns, by its state there",
                   model = "The terms stacked against the measured time of the random workload",
                   predicted = "Held-out validation: predicted against measured time, and the error by threads",
                   decomposed = "The random workload on the simulated machine, taken apart by its counters",
                   coherence = "Misses and who causes them, on the simulated machine",
                   timed = "The random workload in simulated time, by threads",
                   replay = "Resident memory of recorded programs, played back, over their calls")

#' A caption: the title and, where something was measured, the sentences that belong to it.
#' @param item a figure or table
caption_tex <- function(title, item) {
  paste(c(paste0(title, "."), if (is.null(item$reason)) item$caption else "Not measured here."), collapse = " ")
}

#' Write and draw every figure.
#' @param plots folder of the .gp files
#' @param out folder to write into
write_figures <- function(figures, registry, plots, out) {
  write_lines(style_gp(registry), file.path(out, "style.gp"))
  macros <- character()
  for (name in names(figures)) {
    figure <- figures[[name]]
    unlink(file.path(out, paste0(name, c(".pdf", ".svg"))))
    if (is.null(figure$reason)) {
      for (file in names(figure$files)) write_lines(figure$files[[file]], file.path(out, file))
      for (format in c("pdf", "svg")) draw(name, format, plots, out)
    }
    write_lines(figure_tex(name, figure), file.path(out, paste0("fig-", name, ".tex")))
    macros[paste0("capFig", macro_part(name))] <- caption_tex(FIGURE_TITLES[[name]], figure)
  }
  write_lines(macro_lines(macros), file.path(out, "figure-macros.tex"))
}

#' Run gnuplot in the output folder; its messages end the script, except that a series has no point or interval.
draw <- function(name, format, plots, out) {
  old <- setwd(out)
  on.exit(setwd(old))
  said <- suppressWarnings(system2("gnuplot", c("-c", shQuote(file.path(plots, paste0(name, ".gp"))), format),
                                   stdout = TRUE, stderr = TRUE, env = paste0("GNUPLOT_LIB=", shQuote(plots))))
  status <- attr(said, "status")
  said <- said[!grepl("no valid points|^[[:space:]]*$", said)]
  failed <- !is.null(status) || any(grepl("warning|line [0-9]+:", said))
  if (failed) stop("gnuplot ", name, ".gp: ", paste(said, collapse = " "))
}

#' \newcommand lines of named texts (already LaTeX).
macro_lines <- function(macros) sprintf("\\newcommand{\\%s}{%s}", names(macros), macros)
