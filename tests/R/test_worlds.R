# The cost model on the simulated machine: terms, steps, planted costs and held-out cells, from rows with a known truth.

root <- tempfile("ak-worlds-")
set.seed(11)
for (one in names(made <- synthetic_model(run_columns(), 6))) {
  synthetic_write(file.path(root, one), contract, made[[one]]$rows, metrics = made[[one]]$metrics)
}
results <- read_results(root, contract)
fitted <- fit_model(results)
plants_of <- function(results) fit_plants(results, decompose(results)$cost)
NO_PRICES <- data.frame(price = PRICES, value = NA_real_, launches = 0L, from = "not measured here: no chase")
truth_of <- function(allocator) SYNTHETIC_MODEL[SYNTHETIC_MODEL$allocator == allocator, ]

test_that("the whole is taken apart into the terms that it was made of", {
  terms <- fitted$terms
  expect_equal(order(terms$allocator, terms$n), seq_len(nrow(terms)))
  expect_equal(unique(terms$reason), "")
  for (a in SYNTHETIC_MODEL$allocator) for (n in c(1, 4, 16)) {
    wanted <- synthetic_terms(truth_of(a), n)
    for (term in names(wanted)) {
      value <- terms$value[terms$allocator == a & terms$n == n & terms$term == term]
      expect_lt(abs(value - wanted[[term]]), max(2.5, 0.04 * abs(wanted[[term]])))
    }
  }
})

test_that("steps of T_metadata lie where they were put, and nowhere else", {
  steps <- fitted$steps[fitted$steps$world == "simulated", ]
  for (a in SYNTHETIC_MODEL$allocator) {
    own <- steps[steps$allocator == a, ]
    expect_equal(own$size_to[1], truth_of(a)$step)
    expect_equal(nrow(own), 2)
    expect_equal(own$level, c(truth_of(a)$small, truth_of(a)$large), tolerance = 0.01)
  }
  expect_equal(step_partition(log(c(10, 10.05, 9.97, 10.02)), 0.001), rep(1, 4))
  expect_equal(step_partition(log(c(10, 10, 20, 20, 10)), 0.001), c(1, 1, 2, 2, 3))
  expect_equal(step_partition(numeric(), 0.1), integer())
})

test_that("a planted cost is present in its own term, absent in the others, and tlfl has none", {
  plants <- fitted$plants
  expect_setequal(plants$allocator, c("tlfl", names(PLANTS)))
  expect_true(all(plants$verdict[plants$planted] == "present"))
  by_definition <- plants$allocator == "tlfl-locked" & plants$term == "metadata"
  expect_true(all(plants$verdict[!plants$planted & !by_definition] == "absent"))
  expect_true(all(plants$verdict[by_definition] %in% c("expected", "absent")))
  # The plant of a variant does not widen the margin that its other terms are judged by.
  cycles <- plants[plants$term == "lock" & plants$n == 16, ]
  expect_equal(cycles$margin, rep(cycles$margin[cycles$allocator == "tlfl"], nrow(cycles)), tolerance = 1e-6)
  expect_equal(plants$term[plants$planted], unname(PLANTS))
})

test_that("the sentence on planted costs tells what was not judged from what is open, and names what is expected", {
  plants <- data.frame(allocator = "tlfl-locked", term = c("lock", "metadata", "lines_node"), planted = c(TRUE, FALSE, FALSE),
                       value = c(9000, 62, 0), verdict = c("present", "expected", "open"))
  said <- plants_sentence(plants)
  expect_match(said, "Of the 1 planted cost, looked for in the term where each belongs, 1 is present; of the 2 other terms, ",
               fixed = TRUE)
  expect_match(said, "1 is open and 1 is expected", fixed = TRUE)
  expect_match(said, "tlfl-locked, 62.0 cycles an operation", fixed = TRUE)
  plants$verdict <- "not judged: fewer than six launches"
  said <- plants_sentence(plants)
  expect_match(said, "1 is not judged (fewer than 6 launches); of the 2 other terms, 2 are not judged", fixed = TRUE)
  expect_false(grepl("open", said))
})

test_that("a goal is judged for each way of leaving out, and for none with few cells", {
  cell <- function(how, n, error) {
    data.frame(world = "simulated", held_out = how, allocator = "tlfl", n = 1, size_min = 16, size_max = 64,
               error = rep(error, n), launches = 8)
  }
  cells <- rbind(cell("size", 20, 0.01), cell("sizes", 6, 0.4), cell("allocator", 5, 0.01))
  summary <- held_out_summary(cells)
  expect_equal(summary$verdict[match(c("all", "size", "sizes", "allocator"), summary$held_out)],
               c("met", "met", "missed", "not judged: fewer than 6 cells"))
  said <- held_out_lines(cells)
  expect_true(any(grepl("^  size distributions left out: .* 6 cells of 8 launches each; goal 15.0 %: missed$", said)))
})

test_that("a machine is named as a sentence names it, and a unit as it is written", {
  for (unit in c("ns", "cycle")) {
    world <- if (unit == "ns") "native" else "simulated"
    steps <- data.frame(world = world, allocator = "tlfl", variant = METADATA_VARIANT, size_from = 16, size_to = 64, level = 12,
                        unit = unit, sizes = 3, launches = 6)
    table <- table_steps(list(steps = steps), complete_registry(read_registry(""), "tlfl"))
    expect_match(table$caption[1], if (unit == "ns") "^On this machine; " else "^On the simulated machine; ")
    expect_true(any(grepl(if (unit == "ns") "& ns an operation" else "& cycles an operation", table$lines)))
  }
})

test_that("the whole taken apart is drawn without a warning, also with few bars and long names", {
  skip_if(Sys.which("gnuplot") == "", "gnuplot is not installed")
  for (bars in c(2, 4)) {
    name <- paste0("tlfl-", strrep("long-", 7))
    terms <- expand.grid(term = c(DECOMPOSED, "T_alloc"), n = 2^seq_len(bars), stringsAsFactors = FALSE)
    terms <- cbind(terms, allocator = name, value = ifelse(terms$term == "T_alloc", 120, 20), launches = 6)
    registry <- complete_registry(read_registry(""), name)
    out <- local_folder()
    write_figures(list(decomposed = figure_decomposed(list(terms = terms), registry)), registry,
                  file.path(suite, "analysis", "plots"), out)
    expect_gt(min(file.size(file.path(out, c("decomposed.svg", "decomposed.pdf")))), 1000)
    for (part in TERM_NAMES) expect_true(any(grepl(part, readLines(file.path(out, "decomposed.svg")), fixed = TRUE)))
  }
})

test_that("without a plant the plant is not seen, and few launches are not judged", {
  blind <- results
  own <- blind$simulated
  same <- own$allocator %in% names(PLANTS)
  own[same, ] <- transform(own[match(sub("tlfl-[a-z]+", "tlfl", paste(own$allocator, own$threads, own$rep, own$folder,
                                                                       own$kernel, own$size_min))[same],
                                     paste(own$allocator, own$threads, own$rep, own$folder, own$kernel, own$size_min)), ],
                           allocator = own$allocator[same])
  blind$simulated <- own
  plants <- plants_of(blind)
  expect_false(any(plants$verdict == "present"))
  few <- results
  few$simulated <- few$simulated[few$simulated$rep < 6, ]
  expect_match(plants_of(few)$verdict, "not judged")
})

test_that("held-out cells are predicted: sizes but at a step, thread counts, and an allocator that no fit saw", {
  cells <- fitted$predicted
  expect_setequal(cells$held_out, c("size", "threads", "allocator"))
  error <- function(what, ...) abs(cells$error[cells$held_out == what & ...])
  expect_lt(stats::median(error("size", TRUE)), 0.01)
  # What begins with the second thread cannot be known where two threads are left out.
  begins <- cells$n == 2 & cells$allocator %in% c("tlfl-locked", "tlfl-packed")
  expect_lt(max(error("threads", !begins)), 0.05)
  expect_lt(max(error("threads", begins)), 0.25)
  expect_lt(max(error("allocator", cells$n == 1)), 0.10)
  blank <- cells[is.na(cells$predicted), ]
  expect_true(all(blank$held_out == "allocator" & blank$n > 1 & grepl("no contended fast path", blank$reason)))
  said <- held_out_lines(cells)
  expect_match(said[1], "^held out, simulated machine, ")
  expect_true(any(grepl("n = 16, S = 16 to 4096 B", said, fixed = TRUE)))
})

test_that("rows with more threads than cores enter nothing", {
  over <- results
  late <- over$simulated$threads == 16
  over$simulated$oversubscribed[late] <- 1
  expect_equal(max(decompose(over)$terms$n), 8)
})

test_that("P_eff is the slope over planted lines, less that of the threads' own", {
  rows <- expand.grid(dose = c(0, 1, 2, 4), ring = c("shared", "own"), rep = 1:6, stringsAsFactors = FALSE)
  set.seed(3)
  rows$moved <- ifelse(rows$ring == "own", 0, 0.9 * rows$dose)
  rows$y <- 100 + 5 * rows$dose + 80 * rows$moved + stats::rnorm(nrow(rows))
  expect_equal(planted_slope(rows), 80, tolerance = 0.02)
  expect_true(is.na(planted_slope(rows[rows$dose == 0, ])))
})

test_that("prices come from chases that one level serves, and what no kernel measured from the machine's file", {
  chase <- data.frame(kernel = "chase", threads = 1, ops = 1000, l1d_miss = c(10, 1010, 1010, 1010), ev_l2 = c(0, 1, 0, 0),
                      ev_l3 = c(0, 0, 1, 0), ev_dram = c(0, 0, 0, 1), ev_node = c(0, 0, 0, 1), cycles = c(4, 12, 39, 244),
                      placement = "compact", params = "", folder = "x", allocator = "glibc", key = "x/1")
  for (column in setdiff(CELL_COLUMNS, names(chase))) chase[[column]] <- NA
  metrics <- data.frame(key = "x/1", name = "sim_machine", value = SYNTHETIC_MACHINE)
  prices <- sim_prices(chase, metrics)
  expect_equal(prices$value[match(c("l1", "l2", "l3", "dram_remote"), prices$price)], c(4, 12, 39, 244))
  expect_true(is.na(prices$value[prices$price == "dram_local"]))
  used <- used_prices(prices, machine_prices(chase, metrics))
  cost <- event_costs(used)
  expect_equal(cost[["false"]], 2 * (185 - 4))
  # A price that the file states is written as it was used, and as one that no launch measured.
  stated <- used[used$price %in% c("dram_local", "core_local", "core_remote"), ]
  expect_equal(stated$launches, c(0, 0, 0))
  expect_match(stated$from, "^the machine's file: no (chase|planted lines)")
  expect_equal(stated$value[stated$price == "core_local"], 185 - 4)
  expect_true(all(is.finite(used$value)))
  own <- is.finite(prices$value)
  expect_equal(used[own, ], prices[own, ])
  expect_true(is.na(event_costs(prices)[["dram"]]))
})

test_that("the median of a term covers the truth as often as its interval says, over 200 data sets", {
  truth <- truth_of("tlfl-packed")
  cost <- event_costs(used_prices(NO_PRICES, machine_prices(data.frame(key = "a"),
                                  data.frame(key = "a", name = "sim_machine", value = SYNTHETIC_MACHINE))))
  wanted <- synthetic_terms(truth, 4)
  launch <- function() {
    instr <- (wanted[["metadata"]] + wanted[["further"]]) * synthetic_noise(0.003)
    false <- truth$false * synthetic_noise(0.05)
    data.frame(instr = instr, ev_l2 = 1, ev_l3 = 0, ev_dram = 0.1, ev_read_shared = 0, ev_false = false, ev_node = 0,
               cycles = instr + 8 + 21.6 + false * 362 + stats::rnorm(1, 0, 1))
  }
  hits <- count_draws(5, function() {
    rows <- launch_terms(do.call(rbind, lapply(1:8, function(i) launch())), wanted[["metadata"]], cost)
    vapply(c("further", "alpha", "lock"), function(term) covers(median_interval(rows[[term]]), wanted[[term]]), TRUE)
  })
  expect_exact(hits)
})

test_that("coefficients of a planted slope are covered in 90 of 100 data sets, by bootstrap over launches", {
  design <- expand.grid(dose = c(0, 1, 2, 4), ring = c("shared", "own"), rep = 1:6, stringsAsFactors = FALSE)
  design$moved <- ifelse(design$ring == "own", 0, design$dose)
  hits <- count_draws(6, function() {
    rows <- design
    rows$y <- 100 + 5 * rows$dose + 80 * rows$moved + stats::rnorm(nrow(rows), 0, 6)
    got <- bootstrap_parameters(rows, function(rows) c(P_eff = planted_slope(rows)), by = c("dose", "ring"), resamples = 100)
    covers(got, 80)
  })
  expect_bootstrap(hits)
})

test_that("on launches of the simulated machine every planted cost is found, and tlfl's own cannot be told from none", {
  real <- read_results(file.path(suite, "tests", "R", "fixtures"), contract)
  expect_equal(nrow(real$simulated), 48)
  plants <- plants_of(real)
  expect_true(all(plants$launches == 6))
  expect_true(all(plants$verdict[plants$planted] == "present"))
  by_definition <- plants$allocator == "tlfl-locked" & plants$term == "metadata"
  expect_equal(plants$verdict[by_definition], "expected")
  expect_gt(plants$low[by_definition], 0)
  expect_equal(setdiff(plants$verdict[!plants$planted & !by_definition], "absent"), character())
  expect_setequal(plants$allocator, c("tlfl", names(PLANTS)))
  own <- plants[plants$allocator == "tlfl" & plants$term == "lock", ]
  expect_true(own$low < 0 && own$high > 0)
  # All of one thread's time has a name, but for a few lines of the start that are counted and not timed.
  cost <- event_costs(used_prices(NO_PRICES, machine_prices(real$simulated, real$metrics)))
  fast <- timed_launches(real)
  fast <- fast[fast$kernel == "fastpath", ]
  expect_lt(max(abs(launch_terms(fast, 0, cost)$lock * fast$ops)), 10 * cost[["dram"]])
})

test_that("P_eff stands beside P_L3: threads close together by the cheapest distance, far apart by the dearest", {
  effective <- rbind(fit_row(interval_of(100, 90, 110), "tlfl", "P_eff", "compact", 2),
                     fit_row(interval_of(100, 90, 110), "tlfl", "P_eff", "scatter", 2))
  penalty <- rbind(fit_row(interval_of(50, 49, 51), term = "P_L3", variant = "modified, same L3"),
                   fit_row(interval_of(200, 190, 210), term = "P_L3", variant = "modified, other socket"))
  expect_equal(fit_effective_ratio(effective, penalty)$value, c(2, 0.5))
  expect_null(fit_effective_ratio(NULL, penalty))
})
