# Figures of the cost model: predicted against measured with residuals, and the whole taken apart.

WORLD_TEXT <- c(native = "this machine", simulated = "simulated machine")
ON_WORLD <- c(native = "On this machine", simulated = "On the simulated machine") # as a sentence begins
UNIT_HEAD <- c(ns = "ns an operation", cycle = "cycles an operation")
HELD_OUT_TEXT <- c(size = "sizes", threads = "thread counts", sizes = "size distributions", allocator = "an allocator")

#' Left: predicted over measured, both axes logarithmic; right: the error by thread count. A panel pair a world.
figure_predicted <- function(fit, registry) {
  cells <- fit$predicted[is.finite(fit$predicted$error), , drop = FALSE]
  if (is.null(cells) || nrow(cells) == 0) return(not_measured("no held-out cell could be predicted in these data"))
  worlds <- intersect(names(WORLD_TEXT), cells$world)
  kinds <- intersect(names(HELD_OUT_TEXT), cells$held_out)
  block <- function(world, kind) {
    own <- cells[cells$world == world & cells$held_out == kind, , drop = FALSE]
    colour <- strtoi(sub("#", "", registry$colour[linetype_of(registry, own$allocator)]), 16L)
    dat_block(own$measured, own$predicted, own$n * dodge(kind, kinds, 1.08), 100 * own$error, colour)
  }
  axes <- lapply(worlds, function(world) {
    own <- cells[cells$world == world, , drop = FALSE]
    limits <- log_limits(c(own$measured, own$predicted))
    n <- sort(unique(own$n))
    c(sprintf("low = %g", limits[1]), sprintf("high = %g", limits[2]), sprintf("n_low = %g", min(n) / 1.35),
      sprintf("n_high = %g", max(n) * 1.35), sprintf("unit = %s", gnuplot_string(own$unit[1])),
      sprintf("world = %s", gnuplot_string(WORLD_TEXT[[world]])),
      sprintf("set xtics (%s)", paste(sprintf("'%d' %d", n, n), collapse = ", ")))
  })
  names(axes) <- sprintf("predicted-axes-%d.gp", seq_along(worlds))
  shown <- display_order(registry, unique(cells$allocator))
  spread <- max(30, min(100, ceiling(max(abs(100 * cells$error)) / 10) * 10))
  list(files = c(list(
    "predicted.dat" = unlist(lapply(worlds, function(w) lapply(kinds, function(k) block(w, k)))),
    "predicted-vars.gp" = c(gp_vars(worlds = length(worlds), kinds = length(kinds), spread = spread,
                                    single = 100 * HELD_OUT_GOALS[["single"]], contended = 100 * HELD_OUT_GOALS[["contended"]]),
                            sprintf("array kind[%d] = [%s]", length(kinds),
                                    paste(vapply(HELD_OUT_TEXT[kinds], gnuplot_string, ""), collapse = ", "))),
    "predicted-colours.gp" = c(sprintf("colours = %d", length(shown)),
                               sprintf("array colour_of[%d] = [%s]", length(shown),
                                       paste(gnuplot_strings(registry$colour[linetype_of(registry, shown)]), collapse = ", ")),
                               sprintf("array name_of[%d] = [%s]", length(shown),
                                       paste(gnuplot_strings(allocator_label(registry, shown)), collapse = ", ")))
  ), axes), launches = cells$launches, caption = predicted_caption(cells, spread))
}

gnuplot_strings <- function(text) vapply(text, gnuplot_string, "")

predicted_caption <- function(cells, spread) {
  beyond <- sum(abs(100 * cells$error) > spread)
  c(sprintf("Each point is a cell that the fit did not see, measured over %s.", launches_phrase(cells$launches)),
    "Symbols: what was left out; colours: allocators.",
    sprintf("Grey: within %s of the measurement with one thread, %s with several.",
            share_tex(HELD_OUT_GOALS[["single"]]), share_tex(HELD_OUT_GOALS[["contended"]])),
    if (beyond > 0) sprintf("%s with an error beyond the frame %s at its edge.", plural(beyond, "cell"),
                            if (beyond == 1) "stands" else "stand"))
}

#' A share as LaTeX.
share_tex <- function(x) paste0(number_text(100 * x, 2), "\\,\\%")

# Colours of the terms, in the order of DECOMPOSED.
TERM_COLOURS <- c(metadata = "#56B4E9", further = "#eadfb8", memory = "#009E73", alpha = "#E69F00", node = "#CC79A7",
                  lock = "#D55E00")
TERM_NAMES <- c(metadata = "T_metadata", further = "further instructions", memory = "working set",
                alpha = "alpha P, false sharing", node = "alpha P, other node", lock = "C_lock (the rest)")

#' A bar an allocator and thread count, as shares of its time; the time stands beside it.
figure_decomposed <- function(fit, registry) {
  terms <- fit$terms
  if (is.null(terms) || nrow(terms) == 0) {
    return(not_measured("no ok rows of churn in the simulated machine's timed mode"))
  }
  allocators <- display_order(registry, unique(terms$allocator))
  bars <- unique(terms[c("allocator", "n")])
  bars <- bars[order(match(bars$allocator, allocators), bars$n), ]
  value <- function(term) {
    own <- terms[terms$term == term, , drop = FALSE]
    own$value[match(paste(bars$allocator, bars$n), paste(own$allocator, own$n))]
  }
  parts <- vapply(DECOMPOSED, value, numeric(nrow(bars)))
  dim(parts) <- c(nrow(bars), length(DECOMPOSED))
  unknown <- is.na(parts[, 1])
  parts[is.na(parts)] <- 0
  total <- value("T_alloc")
  edges <- 100 * t(apply(cbind(0, parts), 1, cumsum)) / total
  text <- sprintf("%s, %d", allocator_label(registry, bars$allocator), bars$n)
  list(files = list(
    "decomposed.dat" = do.call(dat_block, c(list(seq_len(nrow(bars))), lapply(seq_len(ncol(edges)), function(k) edges[, k]))),
    "decomposed-vars.gp" = c(gp_vars(rows = nrow(bars), terms = length(DECOMPOSED), x_low = min(0, floor(min(edges))),
                                     x_high = max(100, ceiling(max(edges))), label_width = label_width(text)),
                             sprintf("array name_of[%d] = [%s]", length(DECOMPOSED),
                                     paste(gnuplot_strings(TERM_NAMES[DECOMPOSED]), collapse = ", ")),
                             sprintf("array colour_of[%d] = [%s]", length(DECOMPOSED),
                                     paste(gnuplot_strings(TERM_COLOURS[DECOMPOSED]), collapse = ", "))),
    "decomposed-labels.gp" = c(row_tics(text),
                               sprintf("set label %s at graph 1.01, first %d left front textcolor rgb '#202020'",
                                       gnuplot_strings(number_text(total)), seq_len(nrow(bars))))
  ), launches = terms$launches[terms$term == "T_alloc"], caption = decomposed_caption(terms, unknown))
}

decomposed_caption <- function(terms, unknown) {
  c("A bar an allocator and thread count, in shares of its time.",
    "The number behind it is that time in simulated cycles an operation.",
    if (any(unknown)) "Where the fast path was not measured, its part lies in the further instructions.",
    "A negative term runs backwards.",
    sprintf("Medians over %s a bar.", launches_phrase(terms$launches[terms$term == "T_alloc"])))
}
