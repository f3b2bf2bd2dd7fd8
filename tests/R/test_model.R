# The fit recovers what the synthetic rows were made with, and names what it cannot know.

root <- tempfile("ak-root-")
write_synthetic(root, contract, cpus = 4, reps = 8, seed = 7)
results <- read_results(root, contract)
fitted <- fit_model(results)
fit <- fitted$fit
truth <- SYNTHETIC_TRUTH

test_that("T_metadata by size is recovered within 2 %", {
  own <- fit[fit$term == "T_metadata" & fit$variant == "pair", ]
  expect_false(any(fit$term == "T_os" & is.finite(fit$size)))
  for (i in seq_along(truth$allocators)) {
    mine <- own[own$allocator == truth$allocators[i], ]
    expect_equal(sort(mine$size), SYNTHETIC_SIZES)
    expect_lt(max(abs(mine$value / synthetic_metadata(i, mine$size) - 1)), 0.02)
  }
})

test_that("loop, system time, gap and penalty are recovered", {
  expect_lt(max(abs(fit$value[fit$term == "harness_loop"] / truth$loop - 1)), 0.02)
  expect_lt(max(abs(fit$value[fit$term == "T_os" & is.na(fit$size)] / truth$sys - 1)), 0.05)
  expect_lt(max(abs(fit$value[fit$term == "single_thread_gap"] - truth$gap)), 2)
  penalty <- fit[fit$term == "P_L3", ]
  expect_lt(max(abs(penalty$value / truth$penalty[sub(",.*", "", penalty$variant)] - 1)), 0.05)
})

test_that("the joint residual is recovered by thread count", {
  for (i in seq_along(truth$allocators)) for (n in c(2, 4)) {
    row <- fit[fit$term == "joint_residual" & fit$allocator == truth$allocators[i] & fit$n == n, ]
    expect_equal(nrow(row), 1)
    wanted <- truth$residual[i] * (n - 1)
    expect_lt(abs(row$value - wanted), max(2.5, 0.03 * wanted))
    expect_lte(row$low, row$value)
    expect_gte(row$high, row$value)
  }
})

test_that("system time of passes shorter than the tick allows stays inside, with the reason", {
  short <- results
  short$runs$sys_ns_per_op <- NA_real_
  own <- fit_model(short)$fit
  os <- own[own$term == "T_os", ]
  expect_true(all(is.na(os$value)))
  expect_true(all(grepl("too short for the tick", os$reason)))
  gap <- own$value[own$term == "single_thread_gap"]
  expect_lt(max(abs(gap - truth$gap - truth$sys)), 2)
  expect_true(is.na(derive(transform(results$runs[1, ], wall_ns = 9e7))$sys_ns_per_op))
})

test_that("null passes too short to tell the loop from the start are not used", {
  short <- results
  short$runs$wall_ns[short$runs$kernel == "null"] <- 9e5
  own <- fit_model(short)$fit
  expect_true(all(is.na(own$value[own$term %in% c("harness_loop", "joint_residual")])))
  expect_match(own$reason[own$term == "joint_residual"][1], "null kernel")
})

test_that("a planted dose moves the residual in proportion", {
  value <- vapply(truth$allocators, function(a) fit$value[fit$term == "joint_residual" & fit$allocator == a & fit$n == 4], 0)
  expect_gt(cor(value, truth$residual), 0.999)
})

test_that("planted false sharing is recovered by object size", {
  ratios <- false_sharing_ratios(results$runs)
  expect_setequal(ratios$object, c(8, 32))
  for (i in seq_along(truth$allocators)) for (object in c(8, 32)) {
    own <- ratios$value[ratios$allocator == truth$allocators[i] & ratios$object == object]
    expect_equal(own, rep(1 + (truth$false_sharing[i] - 1) * 8 / object, 2), tolerance = 0.05)
  }
  expect_equal(unique(smallest_object(ratios)$object), 8)
})

test_that("rows with more threads than CPUs enter nothing", {
  expect_lte(max(fit$n, na.rm = TRUE), 4)
  expect_lte(max(fitted$model$n), 4)
})

test_that("terms without a number carry a reason and no value", {
  empty <- fit[is.na(fit$value), ]
  expect_setequal(empty$term, c("alpha", "C_lock", "alpha_node", "chase"))
  expect_true(all(grepl("^not (identifiable|measured) here: ", empty$reason)))
  expect_match(empty$reason[empty$term == "alpha"], "no hardware counters")
  expect_match(empty$reason[empty$term == "alpha_node"], "one NUMA node")
})

test_that("held-out sizes are predicted and the error is printed", {
  expect_gt(nrow(fitted$held_out), 0)
  expect_lt(max(abs(fitted$held_out$error)), 0.03)
})

test_that("the terms add up to the measured time", {
  model <- fitted$model
  total <- model$loop + model$metadata + model$os + model$gap + model$residual
  expect_lt(max(abs(total / model$measured - 1)), 0.02)
})

test_that("coherence misses, where counted, give alpha", {
  counted <- results
  churn <- counted$runs$kernel == "churn"
  counted$runs$counters[churn] <- "perf"
  counted$runs$hitm_local[churn] <- 0.5 * counted$runs$ops[churn]
  counted$runs$hitm_remote[churn] <- 0
  alpha <- fit_coherence(counted)
  expect_equal(unique(alpha$value[alpha$term == "alpha"]), 0.5)
})

test_that("too few launches give a value without an interval, and say so", {
  few <- results
  few$runs <- few$runs[few$runs$rep <= 4, ]
  own <- fit_model(few)$fit
  own <- own[is.finite(own$value), ]
  expect_true(all(is.na(own$low)))
  expect_true(all(grepl("fewer than 6", own$reason)))
})

test_that("a value that is empty in model.csv has its reason beside it", {
  bare <- results
  bare$runs <- bare$runs[bare$runs$kernel != "fastpath", ]
  model <- fit_model(bare)$model
  expect_true(all(is.na(model$metadata)))
  expect_match(model$reason, "no fastpath rows")
  expect_equal(unique(fitted$model$reason), "")
})

test_that("without data every part says that it was not measured", {
  nothing <- results
  nothing$runs <- nothing$runs[0, ]
  nothing$simulated <- nothing$simulated[0, ]
  nothing$matrix <- nothing$matrix[0, ]
  empty <- fit_model(nothing)
  expect_true(all(is.na(empty$fit$value)))
  expect_true(all(grepl("not measured here|not identifiable here", empty$fit$reason)))
  out <- local_folder()
  write_fit(empty, out)
  expect_match(empty_lines(empty), "csv: no row: not measured here: no ")
  expect_length(empty_lines(empty), 7)
  read <- read_fit(out)
  registry <- complete_registry(read_registry(""), character())
  for (figure in all_figures(nothing, read, registry)) expect_match(figure$reason, "not measured here")
  claims <- read_claims(file.path(suite, "paper"))
  tables <- all_tables(nothing, read, claims, registry)
  expect_match(tables$model$reason, "not measured here")
  expect_equal(compare_published(nothing, claims)$verdicts$verdict, rep("not yet measured", 4))
  expect_false(anyNA(all_numbers(nothing, read, claims, registry)))
})

test_that("the mean over sizes covers its range or has no value", {
  expect_equal(mean_over_sizes(c(16, 64, 256), c(1, 1, 1), 16, 256, "loguniform"), 1)
  expect_equal(mean_over_sizes(c(16, 64), c(1, 3), 16, 64, "loguniform"), 2)
  expect_true(is.na(mean_over_sizes(c(16, 64), c(1, 3), 8, 64, "loguniform")))
  expect_true(is.na(mean_over_sizes(c(16, 64), c(1, 3), 16, 64, "file:sizes.txt")))
})
