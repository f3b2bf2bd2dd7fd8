# Tables of the cost model: held-out errors, steps of T_metadata, planted costs, models of contention.

KIND_TEXT <- c(single = "one thread", contended = "several")

#' Errors by world, threads and what was left out.
table_heldout <- function(fit) {
  summary <- held_out_summary(fit$predicted)
  if (is.null(summary)) return(list(reason = "not measured here: no held-out cell could be predicted", launches = integer()))
  body <- lapply(seq_len(nrow(summary)), function(i) {
    s <- summary[i, ]
    what <- if (s$held_out == "all") "\\emph{all}" else HELD_OUT_TEXT[[s$held_out]]
    c(WORLD_TEXT[[s$world]], KIND_TEXT[[s$kind]], what, s$cells, share_tex(s$median), share_tex(s$worst),
      share_tex(s$within), share_tex(s$goal), s$launches, s$verdict)
  })
  ends <- which(c(summary$held_out[-1] == "all", FALSE))
  head <- c("machine", "threads", "left out", "cells", "median", "worst", "within", "goal", "n", "")
  list(lines = tabular("lllrrrrrrl", head, body, ends),
       launches = cell_launches(fit$predicted),
       caption = c("Relative errors of cells that the fit did not see; within: the share of them under the goal, which is for",
                   "the median, of all cells and of each way of leaving out. On the simulated machine prices and times are the",
                   "same model's, so that only the estimator is checked there.",
                   sprintf("Measured over %s a cell.", launches_phrase(cell_launches(fit$predicted)))))
}

#' Launches behind the cells that were predicted.
cell_launches <- function(predicted) predicted$launches[is.finite(predicted$error)]

#' Steps of T_metadata by allocator (variant pair), in the world that has more sizes.
table_steps <- function(fit, registry) {
  steps <- fit$steps[fit$steps$variant %in% METADATA_VARIANT, , drop = FALSE]
  if (is.null(steps) || nrow(steps) == 0) {
    return(list(reason = "not measured here: no ok single-thread fastpath rows", launches = integer()))
  }
  sizes <- tapply(steps$sizes, steps$world, sum)
  steps <- steps[steps$world == names(sizes)[which.max(sizes)], , drop = FALSE]
  body <- lapply(display_order(registry, unique(steps$allocator)), function(a) {
    own <- steps[steps$allocator == a, , drop = FALSE]
    c(tex_escape(allocator_label(registry, a)), nrow(own),
      paste(sprintf("%s\\,B: %s", ifelse(own$size_from == own$size_to, own$size_from, paste0(own$size_from, "--", own$size_to)),
                    number_text(own$level)), collapse = "; "))
  })
  list(lines = tabular(paste0("lr", wrapped(0.68)), c("allocator", "steps", UNIT_HEAD[[steps$unit[1]]]), body),
       launches = steps$launches,
       caption = c(paste0(ON_WORLD[[steps$world[1]]],
                          "; sizes that stand together cost the same, as far as these data tell."),
                   sprintf("Found by penalised change points over the sizes that were measured; %s a step.",
                           launches_phrase(steps$launches))))
}

PLANT_TEXT <- c(metadata = "$T_{\\mathrm{metadata}}$", lock = "$C_{\\mathrm{lock}}$", lines_false = "$\\alpha$, false sharing",
                lines_node = "$\\alpha$, other node")

#' Is every planted cost where it belongs?
table_planted <- function(fit, registry) {
  plants <- fit$plants
  if (is.null(plants) || nrow(plants) == 0) {
    return(list(reason = "not measured here: no simulated rows of tlfl and its variants", launches = integer()))
  }
  body <- lapply(seq_len(nrow(plants)), function(i) {
    p <- plants[i, ]
    first <- i == 1 || p$allocator != plants$allocator[i - 1] || p$n != plants$n[i - 1]
    c(if (first) tex_escape(allocator_label(registry, p$allocator)) else " ", if (first) p$n else " ",
      paste0(PLANT_TEXT[[p$term]], if (isTRUE(as.logical(p$planted))) "$^{\\ddagger}$"), number_text(p$value), interval_tex(p),
      tex_escape(p$unit), number_text(p$margin),
      paste0(p$verdict, apart_mark(holds_together(p))))
  })
  ends <- which(diff(match(plants$allocator, unique(plants$allocator))) != 0)
  list(lines = tabular("lrlrrrrl", c("allocator", "n", "term", "difference", INTERVAL_HEAD, "unit", "margin", ""), body, ends),
       launches = plants$launches,
       caption = c("Variants: differences from tlfl, of paired launches; tlfl: its own values. Double dagger: what was planted.",
                   "Absent: the whole interval lies within the margin; present: all of it lies beyond. The margin is",
                   sprintf("%s of the time of tlfl's operation, or of the lines that its caches miss.", share_tex(ABSENT_SHARE)),
                   if (any(plants$verdict == "expected")) {
                     "Expected: the take and release of a free lock belong to $T_{\\mathrm{metadata}}$ by definition."
                   },
                   if (any(holds_together(plants))) {
                     sprintf("\\S: so too where all %s lines hold together (Bonferroni).", count_text(nrow(plants)))
                   },
                   if (!any(holds_together(plants))) {
                     "Each line is judged by itself; for all of them together there are too few launches."
                   },
                   sprintf("Simulated; %s a line.", launches_phrase(plants$launches))))
}

#' Whether a planted cost has its verdict also with intervals that all hold at once.
holds_together <- function(plants) {
  mapply(identical, as.character(plants$together), as.character(plants$verdict), USE.NAMES = FALSE) &
    !startsWith(as.character(plants$verdict), "not judged")
}

#' The model of contention that predicts an allocator's thread counts best.
table_contention <- function(fit, registry) {
  own <- fit$contention[fit$contention$chosen %in% TRUE, , drop = FALSE]
  if (is.null(own) || nrow(own) == 0) {
    reason <- unique(stats::na.omit(fit$contention$reason))
    return(list(reason = if (length(reason) > 0) reason[1] else "not measured here: no ok churn rows", launches = integer()))
  }
  all <- fit$contention
  models <- unique(all[!is.na(all$model), c("model", "label"), drop = FALSE])
  cell <- function(row, model) {
    at <- all[all$world == row$world & all$allocator == row$allocator & all$model %in% model, , drop = FALSE]
    if (nrow(at) == 0 || is.na(at$rms)) return("")
    if (at$chosen) sprintf("\\textbf{%s}", share_tex(at$rms)) else share_tex(at$rms)
  }
  body <- lapply(seq_len(nrow(own)), function(i) {
    c(WORLD_TEXT[[own$world[i]]], tex_escape(allocator_label(registry, own$allocator[i])),
      vapply(models$model, function(model) cell(own[i, ], model), ""))
  })
  head <- tex_escape(models$label)
  align <- paste0("ll", paste(rep(wrapped(0.11), length(head)), collapse = ""))
  list(lines = tabular(align, c("machine", "allocator", head), body),
       launches = own$launches,
       caption = c("Each thread count left out in turn and predicted from the others: root mean square of the relative error.",
                   "Bold: the simplest of those that the noise cannot tell from the best.",
                   if ("measured" %in% models$model) "Measured hand-over: as lock\\_hold has it, by threads at the lock.",
                   sprintf("Medians over %s a thread count.", launches_phrase(own$launches))))
}

HANDOVER_LINES <- 40 # more do not fit a page; handover.csv has all

#' The price of a hand-over: those that have one, and how many have none.
table_handover <- function(fit) {
  all <- fit$handover
  if (is.null(all) || nrow(all) == 0) {
    return(list(reason = "not measured here: no ok rows of lock_hold with a core for every thread", launches = integer()))
  }
  known <- all[is.finite(all$value), , drop = FALSE]
  if (nrow(known) == 0) return(list(reason = unique(all$reason)[1], launches = integer()))
  own <- known[order(known$world, known$lock, known$placement, known$lines, known$at), , drop = FALSE]
  own <- utils::head(own, HANDOVER_LINES)
  body <- lapply(seq_len(nrow(own)), function(i) {
    h <- own[i, ]
    c(WORLD_TEXT[[h$world]], tex_escape(h$lock), tex_escape(h$placement), h$lines, h$n, number_text(h$at, 2),
      number_text(h$value), interval_tex(h), h$unit, h$launches)
  })
  ends <- which(diff(match(paste(own$world, own$lock), unique(paste(own$world, own$lock)))) != 0)
  head <- c("machine", "lock", "placement", "lines", "threads", "at it", "hand-over", INTERVAL_HEAD, "", "n")
  list(lines = tabular("lllrrrrrlr", head, body, ends),
       launches = own$launches,
       caption = c("Lines: those that the owner writes besides the lock's own. At it: threads at the lock on average, its holder",
                   "among them; the hand-over is what a round has beyond the same hold alone.",
                   if (nrow(known) > nrow(own)) sprintf("%s more are in handover.csv.", count_text(nrow(known) - nrow(own))),
                   if (nrow(all) > nrow(known)) {
                     sprintf("%s not identifiable: too few at the lock, or its owner had it again.",
                             are(nrow(all) - nrow(known)))
                   },
                   sprintf("Medians%s over %s.", with_intervals(own), launches_phrase(own$launches))))
}

#' Sentences of the model's section.
worlds_macros <- function(fit) {
  summary <- held_out_summary(fit$predicted)
  all <- summary[summary$held_out == "all", , drop = FALSE]
  said <- if (is.null(all) || nrow(all) == 0) "No held-out cell could be predicted in these data."
          else paste(vapply(seq_len(nrow(all)), function(i) {
            s <- all[i, ]
            sprintf(paste("%s, with %s, the median error of %s that the fit did not see is %s (goal %s: %s);",
                          "the worst is %s."),
                    ON_WORLD[[s$world]], c(single = "one thread", contended = "several threads")[[s$kind]],
                    plural(s$cells, "cell"), share_tex(s$median), share_tex(s$goal), s$verdict,
                    share_tex(s$worst))
          }, ""), collapse = " ")
  c(sayWholeHeldOut = said, sayPlants = plants_sentence(fit$plants))
}

#' What the planted costs show, in sentences. What was not judged is no open question of the data: it stands apart.
plants_sentence <- function(plants) {
  if (is.null(plants) || nrow(plants) == 0) return("No planted cost was looked for in these data.")
  planted <- plants$planted %in% TRUE
  expected <- plants[plants$verdict == "expected", , drop = FALSE]
  counts <- function(own, verdicts) {
    judged <- ifelse(startsWith(own$verdict, "not judged"), "not judged", own$verdict)
    number <- vapply(verdicts, function(v) sum(judged == v), 0L)
    said <- paste(number, ifelse(number == 1, "is", "are"), verdicts)[number > 0]
    sub("not judged", sprintf("not judged (fewer than %s launches)", count_text(MIN_LAUNCHES)), and_list(said))
  }
  paste0("Of the ", plural(sum(planted), "planted cost"), ", looked for in the term where each belongs, ",
         counts(plants[planted, , drop = FALSE], c("present", "absent", "open", "not judged")), "; of the ",
         plural(sum(!planted), "other term"), ", ",
         counts(plants[!planted, , drop = FALSE], c("absent", "present", "open", "expected", "not judged")), ".",
         if (nrow(expected) > 0) {
           sprintf(" Expected: taking and releasing a free lock is $T_{\\mathrm{metadata}}$ by definition (%s).",
                   and_list(unique(sprintf("%s, %s cycles an operation", expected$allocator, number_text(expected$value)))))
         })
}
