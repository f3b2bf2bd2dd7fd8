# The price of handing a lock over: back from rows that were made with it, refused where the lock stood free, and of use.

HANDOVER_TRUTH <- list(ticket = function(k) 100 + 20 * k, mcs = function(k) rep(150, length(k)))
HOLD <- 90

#' Simulated rows of lock_hold.
#' @param think in steps; handed: share of takes that were hand-overs
lock_rows <- function(lock, threads, think = 300, reps = 6, handed = 1, placement = "compact", sweep = "lock_hold-sim") {
  price <- HANDOVER_TRUTH[[lock]]
  parts <- list()
  for (n in threads) for (rep in seq_len(reps)) {
    service <- HOLD + ifelse(seq_len(64) > 1, price(seq_len(64)), 0)
    time <- load_queue_time(max(1e-6, STEP_CYCLES * think), service, n) * synthetic_noise(0.002)
    id <- sprintf("%08x%08x", match(lock, names(HANDOVER_TRUTH)) * 100 + n + 1000 * (placement == "scatter"), rep)
    part <- synthetic_simulated(run_columns(), id, sweep, "lock_hold", "glibc", n, rep, c(instructions = 9), "timed",
                                variant = lock, placement = placement, sim_cycles_per_op = sprintf("%.4f", time))
    part$metrics <- c(part$metrics, sprintf("%s,%s,x,%s,", id, c("param.hold", "param.think", "param.lines", "handover_ratio"),
                                            c(30, think, 1, if (n == 1) 0 else handed)))
    parts <- c(parts, list(part))
  }
  parts
}

#' Results of such rows, and of churn under a lock of the kind, where asked for.
lock_results <- function(..., env = parent.frame()) {
  parts <- synthetic_parts(c(...))
  read_rows(local_folder(env), parts$rows, "lock_hold-sim", metrics = parts$metrics)
}

test_that("the price comes back by threads at the lock, lock and placement", {
  set.seed(5)
  results <- lock_results(lock_rows("ticket", c(1, 2, 8, 16, 32)), lock_rows("ticket", c(1, 16), placement = "scatter"),
                          lock_rows("mcs", c(1, 16)))
  prices <- simulated_handover(results)
  expect_equal(unique(prices$world), "simulated")
  expect_equal(nrow(prices), 6)
  known <- prices[is.finite(prices$value), ]
  expect_true(all(known$at >= LEAST_AT & known$at <= known$n))
  for (i in seq_len(nrow(known))) {
    truth <- HANDOVER_TRUTH[[known$lock[i]]](known$at[i])
    expect_lt(abs(known$value[i] / truth - 1), 0.1)
    expect_true(known$low[i] < known$value[i] && known$value[i] < known$high[i])
  }
  expect_setequal(known$placement, c("compact", "scatter"))
  free <- prices[prices$n == 2, ]
  expect_true(is.na(free$value))
  expect_match(free$reason, "^not identifiable here: .* threads at the lock on average; it stood free$")
})

test_that("a lock that its owner takes again, or that nobody took alone, has no price", {
  again <- simulated_handover(lock_results(lock_rows("mcs", c(1, 16), handed = 0.5)))
  expect_match(again$reason, "50 % of takes by another thread")
  expect_match(simulated_handover(lock_results(lock_rows("mcs", 16)))$reason, "no single-thread rows")
  expect_null(simulated_handover(read_rows(local_folder(), list(plain_row()))))
  native <- read_rows(local_folder(), list(plain_row(kernel = "lock_hold", threads = 2, variant = "mcs")))
  expect_match(native_handover(native)$reason, "no single-thread rows")
})

test_that("what is measured need not be fitted: such a queue predicts what was left out, and names the right lock", {
  skip_if_not_installed("minpack.lm")
  set.seed(6)
  prices <- simulated_handover(lock_results(lock_rows("ticket", c(1, 2, 4, 8, 16, 32), think = 0),
                                            lock_rows("mcs", c(1, 2, 4, 8, 16, 32), think = 0)))
  models <- contention_models(prices)
  expect_equal(names(models), c(names(CONTENTION_MODELS), "measured"))
  service <- 60 + ifelse(seq_len(32) > 1, HANDOVER_TRUTH$ticket(seq_len(32)), 0)
  counts <- c(1, 2, 4, 8, 16)
  rows <- data.frame(threads = rep(counts, each = 6))
  rows$ns_per_op <- load_queue_time(700, service, rows$threads) * exp(stats::rnorm(nrow(rows), 0, 0.005))
  judged <- choose_contention(rows, models)
  own <- judged[judged$model == "measured", ]
  expect_equal(own$form, "ticket")
  expect_lt(own$rms, 0.03)
  expect_lt(own$rms, min(judged$rms[judged$model %in% c("none", "queue", "handover")]))
  fit <- fit_contention(contention_medians(rows), "measured", models = models)
  expect_equal(unname(fit$parameters), c(700, 60, 1), tolerance = 0.2)
  expect_equal(predict_contention(fit, 32), load_queue_time(700, service, 32), tolerance = 0.05)
  # An operation need not take the lock each time; where it hardly does, nothing of it can be told.
  at <- c(2, 4, 8, 16, 32)
  exact <- do.call(rbind, lapply(names(HANDOVER_TRUTH), function(lock) {
    data.frame(lock = lock, placement = "compact", lines = 1, at = at, value = HANDOVER_TRUTH[[lock]](at))
  }))
  models <- contention_models(exact)
  for (takes in c(1, 0.6)) {
    some <- rows
    some$ns_per_op <- takes * load_queue_time(700 / takes, service, rows$threads) * exp(stats::rnorm(nrow(rows), 0, 0.0005))
    choice <- choose_contention(some, models)
    expect_equal(c(choice$model[choice$chosen], choice$form[choice$chosen]), c("measured", "ticket"))
    fit <- fit_contention(contention_medians(some), "measured", models = models)
    expect_equal(fit$parameters[["takes"]], takes, tolerance = 0.1)
  }
  flat <- judge_contention("measured", list(n = counts, time = rep(700, 5)), models)
  expect_true(is.finite(flat$rms) && flat$rms < 0.05 || grepl("^not identifiable here|^no fit without", flat$reason))
  table <- contention_table(transform(rows, allocator = "tlfl"), rows$ns_per_op, "simulated", "churn", models)
  expect_equal(names(table), CONTENTION_CSV)
  expect_true("measured" %in% table$model)
  expect_equal(contention_models(NULL), CONTENTION_MODELS)
})

test_that("a price of this machine comes back in ns, and its table says what it is of", {
  set.seed(7)
  made <- synthetic_locks(run_columns(), 4, 8)
  results <- read_rows(local_folder(), made$rows, "lock_hold", metrics = made$metrics)
  price <- native_handover(results)
  expect_equal(c(price$n, price$at), c(4, 4))
  expect_true(price$low <= 150 && 150 <= price$high && price$high - price$low < 20)
  table <- table_handover(list(handover = price))
  expect_true(any(grepl("this machine & mcs & compact & 1 & 4", table$lines, fixed = TRUE)))
  expect_match(table_handover(list(handover = NULL))$reason, "^not measured here: no ok rows of lock_hold")
})
