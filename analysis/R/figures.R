# The figures' data. Each figure_NAME(...) returns list(files = name -> lines, launches = counts behind the points,
# facts = named texts for the prose) or, where nothing was measured, list(reason).

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

#' gnuplot labels at the right end of lines.
#' @param y wanted places, as share 0..1 of the graph's height
#' @param text labels, colour hex colours
end_labels <- function(y, text, colour, gap = 0.055) {
  if (length(y) == 0) return(character())
  at <- spread_labels(y, gap, 0.01, 0.99)
  sprintf("set label %s at graph 1.015, graph %.4f left front textcolor rgb '%s'", gnuplot_string(text), at, colour)
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
label_width <- function(text) max(nchar(text), 4) * 1.08 + 2

#' Factor that sets a series aside on a log axis, so that intervals at one place do not cover each other.
dodge <- function(one, all, step = 1.014) step^(match(one, all) - (length(all) + 1) / 2)

#' The same as a share of the figure's width.
label_share <- function(text) max(nchar(text), 4) * 0.0105 + 0.025

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
  by <- group_intervals(rows, c("allocator", "threads"), "ops_per_s")
  by[c("value", "low", "high")] <- by[c("value", "low", "high")] * 1e-6
  cpus <- min(rows$cpus)
  x <- sort(unique(by$threads))
  y_high <- max(c(by$value, by$high), na.rm = TRUE) * 1.06
  blocks <- lapply(allocators, function(a) {
    own <- by[by$allocator == a, ]
    own <- own[order(own$threads), ]
    dat_block(own$threads * dodge(a, allocators), own$value, own$low, own$high)
  })
  last <- vapply(allocators, function(a) with(by[by$allocator == a, ], value[which.max(threads)]), 0)
  labels <- end_labels(share_of(last, 0, y_high), allocator_label(registry, allocators),
                       registry$colour[linetype_of(registry, allocators)])
  x_low <- min(x) / 1.15
  x_high <- max(x) * 1.15
  shade <- character()
  if (any(x > cpus)) {
    from <- if (any(x <= cpus)) sqrt(max(x[x <= cpus]) * min(x[x > cpus])) else x_low
    shade <- c(sprintf("set object rectangle from %g, graph 0 to graph 1, graph 1 behind fc rgb SHADE fs solid noborder", from),
               sprintf("set label %s at %g, graph 1.035 left textcolor rgb '#706a5a'",
                       gnuplot_string(sprintf("oversubscribed: more threads than the %d CPUs", cpus)), from))
  }
  tics <- sprintf("set xtics (%s)", paste(sprintf("'%d' %d", x, x), collapse = ", "))
  list(files = list(
    "throughput.dat" = unlist(blocks),
    "throughput-vars.gp" = gp_vars(series = length(allocators), lt_of = linetype_of(registry, allocators),
                                   x_low = x_low, x_high = x_high, y_high = y_high,
                                   label_width = label_width(allocator_label(registry, allocators))),
    "throughput-labels.gp" = c(shade, tics, labels)
  ), launches = by$launches, facts = c(Source = all$folder[1], Cpus = count_text(cpus),
                                       Failed = count_text(sum(slice$status != "ok")),
                                       Cell = slice_text(rows)))
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
  facts = c(Source = all$folder[1], Cell = slice_text(rows),
            Overhead = number_text(stats::median(rows$clock_overhead_ns, na.rm = TRUE))))
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
      cbind(x = -log10(1 - LATENCY_P[[column]]), median_interval(own[[column]]))
    }))
  })
  list(n = n, oversubscribed = any(rows$threads > rows$cpus), curves = lapply(by_allocator, curve), bars = bars,
       null = curve(null), overhead = stats::median(rows$clock_overhead_ns, na.rm = TRUE),
       launches = vapply(by_allocator, nrow, 0L))
}

#' Places of the curve's axis at which some allocator has a quantile.
any_finite <- function(panel) Reduce(`|`, lapply(panel$curves, function(curve) is.finite(curve$ns)))

latency_labels <- function(panel, allocators, registry, limits) {
  end <- vapply(c(panel$curves, list(panel$null)), function(c) {
    ns <- c$ns[is.finite(c$ns)]
    if (length(ns) == 0) NA_real_ else ns[length(ns)]
  }, 0)
  keep <- is.finite(end)
  text <- c(allocator_label(registry, allocators), "null")[keep]
  colour <- c(registry$colour[linetype_of(registry, allocators)], NULL_COLOUR)[keep]
  title <- sprintf("%d thread%s%s", panel$n, if (panel$n == 1) "" else "s",
                   if (panel$oversubscribed) ", oversubscribed" else "")
  bound <- OVERHEAD_FACTOR * panel$overhead
  c(sprintf("set title %s", gnuplot_string(title)),
    sprintf("set xrange [0.15:%g]", max(c(1.05, panel$curves[[1]]$x[any_finite(panel)])) + 0.05),
    if (is.finite(bound) && bound > limits[1]) {
      sprintf("set object rectangle from graph 0, first %g to graph 1, first %g behind fc rgb SHADE fs solid noborder",
              limits[1], min(bound, limits[2]))
    },
    end_labels(share_of(end[keep], limits[1], limits[2], TRUE), text, colour))
}

# ---- T_metadata by size --------------------------------------------------------------------------

figure_metadata <- function(fit, registry) {
  own <- fit$fit[fit$fit$term == "T_metadata" & is.finite(fit$fit$value), , drop = FALSE]
  if (nrow(own) == 0) return(not_measured("no ok single-thread rows of the fastpath kernel"))
  own$variant[is.na(own$variant)] <- ""
  variants <- unique(c(intersect(c("pair", "lifo", "fifo"), own$variant), own$variant))
  variants <- variants[seq_len(min(3, length(variants)))]
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
      dat_block(one$size * dodge(a, allocators, 1.05), one$value, one$low, one$high)
    })
  })
  labels <- lapply(seq_along(variants), function(k) {
    last <- vapply(allocators, function(a) {
      one <- pick(variants[k], a)
      if (nrow(one) == 0) NA_real_ else one$value[nrow(one)]
    }, 0)
    keep <- is.finite(last)
    c(sprintf("set title %s", gnuplot_string(variants[k])),
      if (k == length(variants)) {
        end_labels(share_of(last[keep], limits[1], limits[2], TRUE), allocator_label(registry, allocators[keep]),
                   registry$colour[linetype_of(registry, allocators[keep])])
      })
  })
  names(labels) <- sprintf("metadata-labels-%d.gp", seq_along(variants))
  sizes <- sort(unique(own$size))
  list(files = c(list(
    "metadata.dat" = unlist(blocks),
    "metadata-vars.gp" = gp_vars(series = length(allocators), panels = length(variants), x_low = min(sizes) / 1.4,
                                 x_high = max(sizes) * 1.4, y_low = limits[1], y_high = limits[2],
                                 lt_of = linetype_of(registry, allocators),
                                 label_share = label_share(allocator_label(registry, allocators))),
    "metadata-tics.gp" = size_tics(sizes), "metadata-ytics.gp" = log_tics(limits, "y")
  ), labels), launches = own$launches, facts = c(Source = own$source_sweep[1], Heap = METADATA_HEAP))
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
#' @return data.frame kernel, object, allocator, threads, oversubscribed, folder, value, low, high, launches; NULL
#'   without rows
false_sharing_ratios <- function(runs) {
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
      ratio <- paired_ratio(shared$ns_per_op[pairs$a], private$ns_per_op[pairs$b])
      cbind(data.frame(kernel = kernel, object = own$object[1], allocator = own$allocator[1], threads = n,
                       oversubscribed = !any(fits), folder = own$folder[1]), ratio)
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
    c(sprintf("set title %s", gnuplot_string(sprintf("%s, %d threads%s", kernels[k], n,
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
  facts = c(Source = ratios$folder[1], Object = if (is.na(ratios$object[1])) "unknown size" else paste(ratios$object[1], "B")))
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
          median_interval(own$rss_overhead_bytes), folder = own$folder[1])
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
  facts = c(Source = by$folder[1], Threads = count_text(rows$threads[1]), Cell = slice_text(rows),
            Condition = if (over) "oversubscribed" else "a CPU for every thread"))
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
  ), labels), launches = length(unique(matrix$key)), facts = c(Source = sub("/[^/]*$", "", matrix$key[1])))
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
  # Without fastpath rows all of the single thread's time beyond the loop is unexplained.
  model$gap <- ifelse(is.na(model$gap), model$single - zero(model$loop), model$gap)
  edges <- apply(cbind(0, zero(model$loop), zero(model$metadata), zero(model$os), zero(model$gap),
                       zero(model$residual)), 1, cumsum)
  edges <- matrix(edges, nrow = 6)
  all_high <- pmax(edges[6, ], model$measured, zero(model$high))
  high <- min(max(all_high), MODEL_CLIP * stats::median(all_high)) * 1.05
  low <- min(0, edges, na.rm = TRUE)
  text <- sprintf("%s, %d", allocator_label(registry, model$allocator), model$n)
  clipped <- which(model$measured > high)
  edges <- pmin(edges, high)
  beyond <- sprintf("set label %s at graph 1.01, first %d left front textcolor rgb '#202020'",
                    gnuplot_string(paste("to", number_text(model$measured[clipped]))), clipped)
  list(files = list(
    "model.dat" = dat_block(seq_len(nrow(model)), edges[1, ], edges[2, ], edges[3, ], edges[4, ], edges[5, ], edges[6, ],
                            model$measured, ifelse(is.na(model$low), model$measured, model$low),
                            ifelse(is.na(model$high), model$measured, model$high)),
    "model-vars.gp" = gp_vars(rows = nrow(model), x_low = low, x_high = high, label_width = label_width(text)),
    "model-labels.gp" = c(row_tics(text), if (length(clipped) > 0) beyond)
  ), launches = model$launches, facts = character())
}

# ---- drawing -------------------------------------------------------------------------------------

FIGURE_NAMES <- c("throughput", "latency", "metadata", "falseshare", "rss", "c2c", "model")

#' Data of every figure.
all_figures <- function(results, fit, registry) {
  list(throughput = figure_throughput(results, registry), latency = figure_latency(results, registry),
       metadata = figure_metadata(fit, registry), falseshare = figure_falseshare(results, registry),
       rss = figure_rss(results, registry), c2c = figure_c2c(results, registry), model = figure_model(fit, registry))
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

#' Macros of a figure: launches behind its points and the facts its caption states.
figure_macros <- function(name, figure, fact_names) {
  facts <- vapply(fact_names, function(fact) if (fact %in% names(figure$facts)) figure$facts[[fact]] else NA_character_, "")
  facts[is.na(facts)] <- if (is.null(figure$reason)) "not recorded" else "not measured here"
  names <- paste0("fig", macro_part(name), c("Launches", fact_names))
  stats::setNames(c(launches_text(figure$launches), tex_escape(facts)), names)
}

FIGURE_FACTS <- list(throughput = c("Source", "Cpus", "Failed", "Cell"), latency = c("Source", "Cell", "Overhead"),
                     metadata = c("Source", "Heap"), falseshare = c("Source", "Object"),
                     rss = c("Source", "Threads", "Cell", "Condition"), c2c = "Source", model = character())

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
    macros <- c(macros, figure_macros(name, figure, FIGURE_FACTS[[name]]))
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
