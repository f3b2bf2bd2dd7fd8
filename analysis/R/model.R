# The cost model  T_alloc(S, n) = T_metadata(S) + E[C_lock](n) + alpha(n) * P_L3,  with T_os beside it. One noun a file:
#
#   terms.R       rows of fit.csv: a term, its interval, or why it has no number
#   metadata.R    T_metadata(S), its steps, sizes left out            penalty.R    P_L3 by state and distance, P_eff
#   whole.R       churn on this machine, term by term                 alpha.R      alpha by hardware counters, or why not
#   lock.R        C_lock: counted inside, residual, and models        contention.R models of contention
#   handover.R    what passing a lock costs, by who waits
#   events.R      what counters of the simulated machine see          decompose.R  the whole taken apart by them
#   predict.R     held-out validation                                 plants.R     are planted costs where they belong?
#
# Every term comes from its own kernel; nothing is regressed jointly, since over n alone the terms are collinear. Here, for
# this machine without counters of lines that move:
#   T_metadata(S)       fastpath, one thread, warm heap (300 live blocks of the class), by size and variant, without
#                       its system time, which is T_os(S), where the passes are long enough to know it
#   harness_loop(n)     null: the measuring loop's own cost; shown, and never counted twice in a sum
#   scale(n)            harness_loop(n) / harness_loop(1): frequency and SMT on the same cores
#   P_L3                c2c, by state and distance
#   T_os(n)             system time per operation of the application-like kernel (churn)
#   single_thread_gap   what churn costs on one thread beyond loop + metadata + system: its mix of sizes and its
#                       working set in the caches, which fastpath does not have
#   joint_residual(n)   growth of churn from 1 to n threads beyond scale(n) and system time: C_lock + alpha * P_L3
#                       together. Without counters the two cannot be told apart.
# Rows with more threads than CPUs measure descheduling and enter nothing here.

#' The whole fit. `fit`, `model` and `held_out` are of this machine; the rest names its world in each row.
#' @return list(fit, model, held_out, steps, prices, terms, contention, predicted, plants)
fit_model <- function(results) {
  runs <- results$runs
  metadata <- fit_metadata(runs)
  whole <- fit_whole(runs)
  planted <- planted_rows(fit_rows(runs[runs$kernel %in% "churn", , drop = FALSE]), results$metrics)
  penalty <- fit_penalty(results)
  effective <- fit_effective(planted, planted$ns_per_op, "ns")
  fit <- rbind(metadata, fit_loop(runs, whole$folder), penalty, effective, fit_effective_ratio(effective, penalty),
               fit_chase(runs), whole$fit, fit_coherence(results),
               fit_lock(fit_rows(runs[runs$kernel %in% "churn", , drop = FALSE]), results$metrics))
  rownames(fit) <- NULL
  c(list(fit = fit[FIT_COLUMNS], model = whole$model, held_out = held_out(runs)), fit_worlds(results))
}

#' What is fitted to this machine and to the simulated one alike, side by side.
fit_worlds <- function(results) {
  fast <- metadata_rows(results$runs)
  main <- fit_rows(whole_rows(results$runs))
  decomposed <- decompose(results)
  simulated <- is.null(decomposed$reason)
  handover <- list(native = native_handover(results), simulated = simulated_handover(results))
  models <- lapply(handover, contention_models)
  list(
    steps = rbind(if (nrow(fast) > 0) fit_steps(fast, own_time(fast, os_resolved(fast)), "native", "ns"),
                  if (simulated && nrow(decomposed$fast) > 0) {
                    fit_steps(decomposed$fast, decomposed$fast$cycles, "simulated", "cycle")
                  }),
    handover = do.call(rbind, unname(handover)),
    prices = decomposed$prices,
    terms = decomposed$terms,
    contention = rbind(if (nrow(main) > 0) contention_table(main, main$ns_per_op, "native", "churn", models$native),
                       if (simulated) {
                         own <- decomposed$rows
                         contention_table(own, own$cycles - own$alpha - own$node, "simulated", "churn",
                                          models$simulated)
                       }),
    predicted = rbind(predict_native(results$runs, models$native), predict_simulated(decomposed, models$simulated)),
    plants = if (simulated) fit_plants(results, decomposed$cost)
  )
}

# ---- files ---------------------------------------------------------------------------------------------------

PRICE_COLUMNS <- c("price", "value", "launches", "from")

# Beside fit.csv, model.csv and heldout.csv: what fit_worlds returns, its columns and its file. A function, since the files of
# this folder may be read in any order.
world_files <- function() {
  list(steps = list("steps.csv", STEP_COLUMNS), prices = list("prices.csv", PRICE_COLUMNS),
       handover = list("handover.csv", HANDOVER_COLUMNS),
       terms = list("terms.csv", DECOMPOSED_COLUMNS), contention = list("contention.csv", CONTENTION_CSV),
       predicted = list("predicted.csv", PREDICTED_COLUMNS), plants = list("planted.csv", PLANTED_COLUMNS))
}

#' Write what fit_worlds returns.
write_worlds <- function(fit, out) {
  files <- world_files()
  for (name in names(files)) write_csv(fit[[name]], files[[name]][[2]], file.path(out, files[[name]][[1]]))
}

SIM_MISSING <- "no ok rows of churn in the simulated machine's timed mode"

#' Why files have no row, a line a file.
empty_lines <- function(fit) {
  files <- vapply(world_files(), `[[`, "", 1)
  why <- c(steps = "no ok single-thread fastpath rows", prices = SIM_MISSING,
           handover = "no ok rows of lock_hold with a core for every thread", terms = SIM_MISSING,
           contention = "no ok churn rows with a core for every thread", predicted = "no cell could be predicted",
           plants = "no simulated rows of tlfl and its variants")
  empty <- names(files)[vapply(names(files), function(name) is.null(fit[[name]]) || nrow(fit[[name]]) == 0, NA)]
  sprintf("%s: no row: not measured here: %s", files[empty], why[empty])
}

#' Read what write_worlds wrote.
read_worlds <- function(out) lapply(world_files(), function(file) read_csv(file.path(out, file[[1]]), file[[2]]))
