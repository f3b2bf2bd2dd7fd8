# How much of a simulated number is the simulator's own making: counts by the length of a turn (weave mode), times by
# how far a core may run ahead (timed mode).

QUANTUM_BASE <- c(weave = 1000, timed = 50) # the defaults (docs/counters.md)
SLACK_METRICS <- data.frame(
  column = c("sim_cycles_per_op", "l3_miss_per_op", "sim_false_sharing_per_op", "sim_true_sharing_per_op",
             "sim_cross_node_per_op"),
  text = c("cycles", "L3 misses", "false sharing", "true sharing", "cross-node")
)
# Of each mode: its sweep and kernels, what is compared, what the quantum is, and which of it the prose is about.
QUANTUM_WHAT <- list(
  weave = list(sweep = "quantum", kernels = COHERENCE_KERNELS, metrics = COHERENCE_METRICS, unit = "accesses a turn",
               told = COHERENCE_METRICS$text, told_as = "counts of weave mode change with the length of a turn"),
  timed = list(sweep = "slack", kernels = "churn", metrics = SLACK_METRICS, unit = "cycles ahead",
               told = "cycles", told_as = "simulated time changes with how far a core may run ahead")
)

#' The cells that were run at several quanta, the default among them.
#' @return list(cells = list of ok rows, all = failed ones and others included)
quantum_cells <- function(results, mode) {
  what <- QUANTUM_WHAT[[mode]]
  all <- do.call(rbind, lapply(what$kernels, function(kernel) simulated_rows(results, kernel, mode, what$sweep)))
  rows <- ok_rows(all)
  key <- cell_key(rows, c("folder", "kernel", "allocator", "threads", "live_blocks", "touch", "work"))
  cells <- lapply(unique(key), function(one) rows[key == one, , drop = FALSE])
  several <- function(own) QUANTUM_BASE[[mode]] %in% own$sim_quantum && length(unique(own$sim_quantum)) > 1
  list(cells = Filter(several, cells), all = all)
}

#' Change of a metric's median from the default quantum to another. Launches at two quanta have seeds of their own: two
#' independent groups.
#' @return as median_interval, as a share (0.02: 2 % more); no value where a launch at the default counted nothing
quantum_change <- function(own, column, quantum, base) {
  groups <- lapply(c(quantum, base), function(q) {
    rows <- own[own$sim_quantum == q & is.finite(own[[column]]), , drop = FALSE]
    list(rows = rows, x = rows[[column]])
  })
  if (length(groups[[2]]$x) == 0 || min(groups[[2]]$x) <= 0) return(median_interval(numeric()))
  launch_combined(groups, function(medians) medians[[1]] / medians[[2]] - 1)
}

#' Values at the default quantum, and beneath them the changes at the others.
table_quantum <- function(results, registry, mode) {
  what <- QUANTUM_WHAT[[mode]]
  base <- QUANTUM_BASE[[mode]]
  found <- quantum_cells(results, mode)
  if (length(found$cells) == 0) {
    why <- if (nrow(ok_rows(found$all)) > 0) paste("one quantum only in", mode, "mode")
           else why_no_rows(found$all, paste("the simulated machine in", mode, "mode"))
    return(list(reason = paste0("not measured here: ", why), launches = integer()))
  }
  body <- list()
  rules <- launches <- integer()
  for (own in found$cells) {
    body <- c(body, quantum_lines(own, what$metrics, base, registry))
    rules <- c(rules, length(body))
    launches <- c(launches, table(own$sim_quantum))
  }
  head <- c("kernel", "threads", "allocator", what$unit, what$metrics$text, "n")
  list(lines = tabular("lrlrrrrrrr", head, body, rules[-length(rules)]), launches = launches, caption = c(
    simulated_text(do.call(rbind, found$cells)),
    sprintf("At %s, the default: medians%s, per operation but for ratios. Else: how the median changes from there;",
            count_text(base), if (any(launches >= MIN_LAUNCHES)) " with intervals" else ""),
    "no change is given where a launch at the default counted nothing.",
    sprintf("Over %s a line.", launches_phrase(launches))))
}

#' The lines of one cell.
quantum_lines <- function(own, metrics, base, registry) {
  at <- own[own$sim_quantum == base, , drop = FALSE]
  first <- c(tex_escape(own$kernel[1]), own$threads[1], tex_escape(allocator_label(registry, own$allocator[1])), base,
             vapply(metrics$column, function(column) value_cell(launch_interval(at, at[[column]])), ""), nrow(at))
  c(list(first), lapply(setdiff(sort(unique(own$sim_quantum)), base), function(quantum) {
    c(rep("~", 3), quantum,
      vapply(metrics$column, function(column) change_cell(quantum_change(own, column, quantum, base)), ""),
      sum(own$sim_quantum == quantum))
  }))
}

#' "+2.1 % [+1.0, +3.2]"; "" where there is none.
change_cell <- function(change) {
  if (is.na(change$value)) return("")
  signed <- function(x) tex_minus(sprintf("%+.1f", 100 * x))
  interval <- if (is.na(change$low)) paste0("(", few_tex(change), ")")
              else paste0("[", signed(change$low), ", ", signed(change$high), "]")
  paste0(signed(change$value), "\\,\\% {\\footnotesize ", interval, "}")
}

# ---- prose ----

#' The largest change of each mode, in words.
quantum_macros <- function(results, registry) {
  c(sayQuantum = paste(vapply(names(QUANTUM_WHAT), function(mode) quantum_sentence(results, registry, mode), ""),
                       collapse = " "))
}

#' Every change of what the prose is about.
quantum_changes <- function(results, mode) {
  what <- QUANTUM_WHAT[[mode]]
  base <- QUANTUM_BASE[[mode]]
  metrics <- what$metrics[what$metrics$text %in% what$told, , drop = FALSE]
  do.call(rbind, lapply(quantum_cells(results, mode)$cells, function(own) {
    cells <- expand.grid(quantum = setdiff(unique(own$sim_quantum), base), metric = seq_len(nrow(metrics)))
    do.call(rbind, Map(function(quantum, i) {
      cbind(own[1, c("kernel", "allocator", "threads")], data.frame(quantum = quantum, text = metrics$text[i]),
            quantum_change(own, metrics$column[i], quantum, base))
    }, cells$quantum, cells$metric))
  }))
}

quantum_sentence <- function(results, registry, mode) {
  what <- QUANTUM_WHAT[[mode]]
  changes <- with_value(quantum_changes(results, mode))
  if (is.null(changes) || nrow(changes) == 0) return(sprintf("How much %s was not measured here.", what$told_as))
  said <- sprintf("How much %s is in Table~\\ref{tab:%s}", what$told_as, what$sweep)
  apart <- changes[which(changes$low > 0 | changes$high < 0), , drop = FALSE]
  if (nrow(apart) == 0 && any(is.finite(changes$low))) {
    return(sprintf("%s: %s, and none is told from zero.", said, plural(nrow(changes), "change")))
  }
  of <- if (nrow(apart) > 0) apart else changes
  most <- of[which.max(abs(of$value)), ]
  sprintf("%s: %s%s; the largest is that of the %s of %s in %s with %s, %s at %s %s instead of %s.", said,
          plural(nrow(changes), "change"),
          if (nrow(apart) > 0) sprintf(", %s of them told from zero", count_text(nrow(apart))) else "",
          most$text, allocator_name(registry, most$allocator), tex_escape(most$kernel), plural(most$threads, "thread"),
          change_cell(most), count_text(most$quantum), what$unit, count_text(QUANTUM_BASE[[mode]]))
}
