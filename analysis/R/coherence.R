# Who misses, and who makes whom miss, counted on the simulated machine: figure, table and prose.

COHERENCE_METRICS <- data.frame(
  column = c("l3_miss_per_op", "l3_miss_ratio", "sim_false_sharing_per_op", "sim_true_sharing_per_op",
             "sim_cross_node_per_op"),
  text = c("L3 misses", "L3 miss ratio", "false sharing", "true sharing", "cross-node")
)
COHERENCE_DRAWN <- COHERENCE_METRICS[COHERENCE_METRICS$column != "l3_miss_ratio", ]
COHERENCE_KERNELS <- c("churn", "false_active", "false_passive")
UNTOUCHED <- "none" # the value of touch with which every line is the allocator's own

#' The cases that are shown: a kernel, and whether blocks are touched.
#' @return list(cases = list of list(title, rows = ok rows of every thread count), all = failed ones included)
coherence_cases <- function(results) {
  all <- lapply(COHERENCE_KERNELS, function(kernel) simulated_rows(results, kernel))
  cases <- lapply(all, function(rows) {
    rows <- ok_rows(rows)
    if (nrow(rows) == 0) return(list())
    rows <- pick_slice(rows, "touch")
    touches <- unique(rows$touch)
    lapply(touches[order(touches %in% UNTOUCHED)], function(touch) {
      list(title = paste0(rows$kernel[1], if (touch %in% UNTOUCHED) ", untouched"),
           rows = rows[rows$touch %in% touch, , drop = FALSE])
    })
  })
  list(cases = unlist(cases, recursive = FALSE), all = do.call(rbind, all))
}

no_coherence <- function(all) why_no_rows(all, "churn and the false-sharing kernels on the simulated machine")

figure_coherence <- function(results, registry) {
  found <- coherence_cases(results)
  if (length(found$cases) == 0) return(not_measured(no_coherence(found$all)))
  shown <- lapply(found$cases, function(case) most_threads(case$rows))
  titles <- vapply(found$cases, function(case) {
    paste0(case$title, ", ", plural(max(case$rows$threads), "thread"))
  }, "")
  allocators <- display_order(registry, unique(unlist(lapply(shown, `[[`, "allocator"))))
  names <- allocator_label(registry, allocators)
  grid <- expand.grid(j = seq_len(nrow(COHERENCE_DRAWN)), k = seq_along(shown))
  panels <- Map(function(j, k) {
    coherence_panel(shown[[k]], COHERENCE_DRAWN$column[j], allocators, registry)
  }, grid$j, grid$k)
  labels <- Map(function(panel, j, k) {
    c(sprintf("set xrange [0:%g]", panel$high), sprintf("set xtics 0, %g", panel$step),
      row_tics(if (j == 1) names else rep("", length(names))),
      sprintf("set xlabel %s", gnuplot_string(if (k == length(shown)) COHERENCE_DRAWN$text[j] else "")),
      if (j == 1) {
        sprintf("set label %s at graph 0, graph 1.09 left textcolor rgb '#202020'", gnuplot_string(titles[k]))
      })
  }, panels, grid$j, grid$k)
  names(labels) <- sprintf("coherence-labels-%d.gp", seq_along(labels))
  by <- do.call(rbind, lapply(panels, `[[`, "by"))
  list(files = c(list(
    "coherence.dat" = unlist(lapply(panels, `[[`, "lines")),
    "coherence-vars.gp" = gp_vars(rows = length(allocators), cases = length(shown), metrics = nrow(COHERENCE_DRAWN),
                                  label_share = label_share(names))
  ), labels), launches = by$launches,
  caption = c(simulated_text(do.call(rbind, shown)), "All counts are per operation.", untouched_sentence(titles),
              sprintf("Medians%s over %s a point.", with_intervals(by), launches_phrase(by$launches))))
}

#' Data of one panel: a line an allocator.
#' @return list(by = intervals, lines, high = end of its axis, step = between its tics)
coherence_panel <- function(rows, column, allocators, registry) {
  by <- group_intervals(rows, "allocator", column)
  colour <- registry$colour[linetype_of(registry, by$allocator)]
  high <- max(c(by$value, by$high, 0), na.rm = TRUE) * 1.08
  if (high == 0) high <- 1
  list(by = by, high = high, step = diff(pretty(c(0, high), 2))[1],
       lines = dat_block(match(by$allocator, allocators), by$value, ifelse(is.na(by$low), by$value, by$low),
                         ifelse(is.na(by$high), by$value, by$high), strtoi(sub("#", "", colour), 16L)))
}

untouched_sentence <- function(titles) {
  if (any(grepl("untouched", titles))) "Untouched: nobody writes to the blocks, and what is shared is the allocator's own."
}

table_coherence <- function(results, registry) {
  found <- coherence_cases(results)
  if (length(found$cases) == 0) {
    return(list(reason = paste0("not measured here: ", no_coherence(found$all)), launches = integer()))
  }
  body <- list()
  rules <- launches <- integer()
  for (case in found$cases) for (threads in sort(unique(case$rows$threads))) {
    at <- case$rows[case$rows$threads == threads, , drop = FALSE]
    for (allocator in display_order(registry, unique(at$allocator))) {
      own <- at[at$allocator == allocator, , drop = FALSE]
      cells <- vapply(COHERENCE_METRICS$column, function(column) value_cell(launch_interval(own, own[[column]])), "")
      launches <- c(launches, nrow(own))
      body <- c(body, list(c(tex_escape(case$title), threads, tex_escape(allocator_label(registry, allocator)), cells,
                             nrow(own))))
    }
    rules <- c(rules, length(body))
  }
  lines <- tabular("lrlrrrrrr", c("kernel", "threads", "allocator", COHERENCE_METRICS$text, "n"), body,
                   rules[-length(rules)])
  list(lines = lines, launches = launches, caption = c(
    simulated_text(do.call(rbind, lapply(found$cases, `[[`, "rows"))),
    "The miss ratio is of the accesses that reach the L3; all others are per operation. Cross-node: misses served by",
    "another node.", untouched_sentence(vapply(found$cases, `[[`, "", "title")),
    medians_over(launches, lines, " a line")))
}

# ---- prose ----

#' The paragraph about false sharing by allocator, and the published ratio of L3 miss ratios.
coherence_macros <- function(results, claims, registry) {
  cases <- coherence_cases(results)$cases
  if (length(cases) == 0) return(c(sayCoherence = "Nothing was counted on it in these data."))
  said <- vapply(cases, coherence_sentence, "", registry)
  c(sayCoherence = paste(c(said, "Figure~\\ref{fig:coherence} and Table~\\ref{tab:coherence} have the other counts.",
                           l3_sentence(results, claims)), collapse = " "))
}

#' Who has the most and the least false sharing in a case.
coherence_sentence <- function(case, registry) {
  rows <- most_threads(case$rows)
  column <- "sim_false_sharing_per_op"
  by <- with_value(group_intervals(rows, "allocator", column))
  words <- function(row) value_words(row, "an operation")
  paste0("In ", tex_escape(case$title), ", with ", plural(rows$threads[1], "thread"), ", ",
         leader_words(by, which.max(by$value), which.min(by$value), "most", "least", "false sharing", registry, words,
                      ratio_among(rows, column)), ".")
}

#' The published ratio of L3 miss ratios beside the simulated one.
l3_sentence <- function(results, claims) {
  threads <- as.numeric(published_conditions(claims)$threads)
  ratio <- simulated_interval(results, "l3_miss_ratio", PUBLISHED_PAIR, threads = threads, held = list(touch = "page"))
  if (!is.finite(ratio$value)) return("The L3 miss ratio of the published workload was not counted there.")
  published <- vapply(PUBLISHED_PAIR, function(a) published_value(claims, "paper.l3", a), 0)
  ops <- results$simulated$ops_per_thread[results$simulated$row_id %in% ratio$row_ids]
  sprintf(paste("Mimalloc's L3 miss ratio over jemalloc's is %s %s there (%s), as published %s; a model of caches and",
                "%s are other conditions than the published ones."),
          number_text(ratio$value), interval_tex(as.data.frame(ratio[c("value", "low", "high", "launches")])),
          launches_phrase(ratio$launches, "pair of launches", "pairs of launches"),
          number_text(published[[1]] / published[[2]]), plural(max(ops), "operation a thread", "operations a thread"))
}
