# A results root made from known coefficients: what the tests fit, and what the end-to-end test prints.
# Nothing here was measured. Seeded: the same call writes the same bytes.
#   Rscript tests/R/synthetic.R OUT        (from the suite's root) writes a root with all its sweeps.

# ns: the truth that the fit has to recover.
SYNTHETIC_TRUTH <- list(
  allocators = c("glibc", "jemalloc", "mimalloc", "tlfl", "odd_name%#1"),
  base = c(14, 9, 7, 6, 22),          # T_metadata at 16 B, gross of the loop
  slope = c(0.030, 0.020, 0.025, 0.015, 0.040), # growth per doubling of size, relative
  loop = 2, gap = 20, sys = 1.5,
  residual = c(60, 12, 3, 2, 400),    # C_lock + alpha * P at each further thread
  false_sharing = c(6, 3.5, 1.02, 1.0, 9),
  penalty = c(modified = 80, exclusive = 60, shared = 55)
)
SYNTHETIC_SIZES <- 2^(3:20)

synthetic_metadata <- function(i, size) {
  SYNTHETIC_TRUTH$base[i] * (1 + SYNTHETIC_TRUTH$slope[i] * (log2(size) - 4))
}

#' An empty row of runs.csv.
synthetic_row <- function(columns, ...) {
  row <- stats::setNames(as.list(rep("", length(columns))), columns)
  given <- list(...)
  row[names(given)] <- given
  row
}

#' Fields that every row has.
synthetic_common <- function(columns, sweep, kernel, allocator, threads, cpus, rep, ...) {
  synthetic_row(columns, sweep = sweep, kernel = kernel, allocator = allocator, threads = threads, cpus = cpus,
                oversubscribed = as.integer(threads > cpus), rep = rep, status = "ok", run_id = paste0("synthetic-", sweep),
                allocator_version = if (allocator == "jemalloc") "5.3.0-0-g54eaed1d" else "1.0",
                allocator_path = paste0("/opt/lib/lib", allocator, ".so.2"), allocator_build_id = strrep("0a1b2c3d", 5),
                placement = "compact", numa_policy = "local", seed = rep, clock_overhead_ns = "20.000",
                counters = "none", counters_reason = "this machine has no hardware counters", machine_id = "0123456789abcdef",
                started_at = "2000-01-01T00:00:00Z", env_bytes = 1000, load_1min = 0.1, steal_ratio = 0.001, ...)
}

#' Times of a row from ns per operation and thread.
synthetic_timed <- function(row, ns_per_op, ops_per_thread, sys_ns_per_op = 0) {
  threads <- as.integer(row$threads)
  ops <- ops_per_thread * threads
  row$ops_per_thread <- ops_per_thread
  row$ops <- ops
  row$wall_ns <- round(ns_per_op * ops_per_thread)
  row$ops_per_s <- ops / row$wall_ns * 1e9
  row$cpu_user_ns <- round((ns_per_op - sys_ns_per_op) * ops)
  row$cpu_sys_ns <- round(sys_ns_per_op * ops)
  row$minor_faults <- round(0.001 * ops)
  row$major_faults <- 0
  row
}

synthetic_noise <- function(sd = 0.01) exp(stats::rnorm(1, 0, sd))

#' A log-linear latency histogram around a body with a heavy tail.
synthetic_hist <- function(row_id, call, body, n) {
  edges <- 16 * 1.01^(0:1100)
  x <- body * exp(stats::rnorm(n, 0, 0.15)) * ifelse(stats::runif(n) < 0.004, 1 + 40 * stats::rexp(n), 1)
  bucket <- pmin(pmax(findInterval(x, edges), 1), length(edges) - 1)
  count <- tabulate(bucket, length(edges) - 1)
  keep <- which(count > 0)
  sprintf("%s,%s,%.3f,%.3f,%d", row_id, call, edges[keep], edges[keep + 1], count[keep])
}

synthetic_quantiles <- function(row, body, samples) {
  row$lat_samples <- samples
  row$lat_mean_ns <- sprintf("%.3f", body * 1.1)
  row$lat_p50_ns <- sprintf("%.3f", body)
  row$lat_p90_ns <- sprintf("%.3f", body * 1.3)
  row$lat_p99_ns <- sprintf("%.3f", body * 1.9)
  row$lat_p999_ns <- sprintf("%.3f", body * 14 * synthetic_noise(0.05))
  row$lat_max_ns <- sprintf("%.3f", body * 400)
  row
}

synthetic_memory <- function(row, i, live) {
  row$live_peak_bytes <- live
  row$usable_peak_bytes <- round(live * 1.09)
  row$rss_baseline_bytes <- 5000000
  row$rss_overhead_bytes <- round(live * (0.25 + 0.1 * i) * synthetic_noise())
  row$rss_peak_bytes <- live + row$rss_baseline_bytes + row$rss_overhead_bytes
  row$rss_end_bytes <- 6000000
  row
}

#' churn rows of one sweep. Returns rows and histogram lines.
synthetic_churn <- function(columns, sweep, threads, cpus, reps, live_blocks, ops = 4000000, hist_samples = 20000) {
  truth <- SYNTHETIC_TRUTH
  rows <- list()
  hist <- character()
  for (live in live_blocks) for (n in threads) for (rep in seq_len(reps)) for (i in seq_along(truth$allocators)) {
    row <- synthetic_common(columns, sweep, "churn", truth$allocators[i], n, cpus, rep, size_min = 16, size_max = 65536,
                            size_dist = "loguniform", live_blocks = live, lifetime_dist = "random", touch = "line")
    grid <- 2^seq(4, 16, length.out = 513)
    ns <- mean(synthetic_metadata(i, grid)) + truth$gap + truth$residual[i] * (min(n, cpus) - 1)
    if (n > cpus) ns <- ns * n / cpus
    row <- synthetic_timed(row, (ns + truth$sys) * synthetic_noise(), ops, truth$sys)
    row <- synthetic_quantiles(row, 30 + 2 * truth$base[i] + truth$residual[i] * (n > 1), 25000 * n)
    row <- synthetic_memory(row, i, live * n * 8000)
    row$row_id <- sprintf("%016x", length(rows) + 1)
    rows <- c(rows, list(row))
    if (n %in% c(cpus, max(threads))) {
      hist <- c(hist, synthetic_hist(row$row_id, "malloc", 30 + 2 * truth$base[i] + truth$residual[i] * (n > 1), hist_samples))
    }
  }
  list(rows = rows, hist = hist)
}

#' null rows.
synthetic_null <- function(columns, sweep, threads, cpus, reps, start, hist_samples = 20000) {
  rows <- list()
  hist <- character()
  for (n in threads) for (rep in seq_len(reps)) {
    row <- synthetic_common(columns, sweep, "null", "glibc", n, cpus, rep)
    row <- synthetic_timed(row, SYNTHETIC_TRUTH$loop * synthetic_noise(0.002) * max(1, n / cpus), 2000000)
    row <- synthetic_quantiles(row, 21, 25000)
    row$row_id <- sprintf("%016x", start + length(rows) + 1)
    rows <- c(rows, list(row))
    hist <- c(hist, synthetic_hist(row$row_id, "malloc", 21, hist_samples))
  }
  list(rows = rows, hist = hist)
}

#' Write one sweep folder.
synthetic_write <- function(dir, contract, rows, hist = character(), matrix = character(), metrics = character(),
                            timeline = character()) {
  dir.create(dir, recursive = TRUE, showWarnings = FALSE)
  columns <- contract[["runs.csv"]]$column
  quote <- function(x) {
    x <- as.character(x)
    if (grepl("[\",\n]", x)) paste0("\"", gsub("\"", "\"\"", x), "\"") else x
  }
  text <- function(x) if (is.numeric(x)) format(x, digits = 15, scientific = FALSE, trim = TRUE) else x
  lines <- vapply(rows, function(row) paste(vapply(row[columns], function(x) quote(text(x)), ""), collapse = ","), "")
  put <- function(name, lines) {
    con <- file(file.path(dir, name), "wb")
    writeLines(lines, con, sep = "\n")
    close(con)
  }
  put("runs.csv", c(paste(columns, collapse = ","), lines))
  side <- list(hist.csv = hist, matrix.csv = matrix, metrics.csv = metrics, timeline.csv = timeline)
  for (name in names(side)) put(name, c(paste(contract[[name]]$column, collapse = ","), side[[name]]))
  put("meta.json", c("{\"command\": \"ak run synthetic\",",
                     " \"machine\": {\"cpu_model\": \"Synthetic CPU_1 & co, 100% made up\", \"cpus_allowed\": 4, \"cores\": 4,",
                     "  \"hardware_threads\": 4, \"numa_nodes\": [{\"node\": 0}], \"memory_bytes\": 8589934592,",
                     "  \"governor\": null, \"thp\": \"madvise\", \"smt\": \"off\", \"hypervisor\": true,",
                     "  \"kernel\": \"0.0.0-synthetic\", \"libc\": \"glibc 2.36\"},",
                     " \"machine_unknown\": {\"governor\": \"no such file: 50% of machines_here have none\"},",
                     " \"suite\": {\"git_commit\": \"0123456789abcdef\"}}"))
}

synthetic_fastpath <- function(columns, cpus, reps) {
  rows <- list()
  factor <- c(pair = 1, lifo = 1.2, fifo = 1.7)
  for (variant in names(factor)) for (size in SYNTHETIC_SIZES) for (rep in seq_len(reps)) {
    for (i in seq_along(SYNTHETIC_TRUTH$allocators)) {
      row <- synthetic_common(columns, "fastpath", "fastpath", SYNTHETIC_TRUTH$allocators[i], 1, cpus, rep,
                              variant = variant, size_min = size, size_max = size, size_dist = "fixed",
                              heap_state = "warm")
      row <- synthetic_timed(row, synthetic_metadata(i, size) * factor[[variant]] * synthetic_noise(0.005), 1000000)
      row$row_id <- sprintf("%016x", length(rows) + 1)
      rows <- c(rows, list(row))
    }
  }
  rows
}

synthetic_falseshare <- function(columns, cpus, reps) {
  rows <- list()
  metrics <- character()
  for (kernel in c("false_active", "false_passive")) for (object in c(8, 32)) for (variant in c("shared", "private")) {
    for (rep in seq_len(reps)) for (i in seq_along(SYNTHETIC_TRUTH$allocators)) {
      row <- synthetic_common(columns, "falseshare", kernel, SYNTHETIC_TRUTH$allocators[i], cpus, cpus, rep,
                              variant = variant)
      slow <- if (variant == "shared") 1 + (SYNTHETIC_TRUTH$false_sharing[i] - 1) * 8 / object else 1
      row <- synthetic_timed(row, 5 * slow * synthetic_noise(0.02), 100000)
      row$row_id <- sprintf("%016x", length(rows) + 1)
      rows <- c(rows, list(row))
      metrics <- c(metrics, sprintf("%s,%s,%s,%d,", row$row_id, c("param.object", "lines", "lines_shared"),
                                    c("bytes", "count", "count"), c(object, 10, if (slow > 1.5) 10 else 0)))
    }
  }
  list(rows = rows, metrics = metrics)
}

synthetic_remote <- function(columns, cpus, reps) {
  rows <- list()
  for (variant in c("one_to_one", "rotating")) for (rep in seq_len(reps)) {
    for (i in seq_along(SYNTHETIC_TRUTH$allocators)) {
      row <- synthetic_common(columns, "remote", "remote_free", SYNTHETIC_TRUTH$allocators[i], cpus, cpus, rep,
                              variant = variant, size_min = 64, size_max = 64, size_dist = "fixed")
      row <- synthetic_timed(row, (40 + 30 * i) * synthetic_noise(0.02), 100000)
      row$row_id <- sprintf("%016x", length(rows) + 1)
      rows <- c(rows, list(row))
    }
  }
  rows
}

#' c2c rows and matrix lines.
synthetic_c2c <- function(columns, cpus, reps, start) {
  rows <- list()
  matrix <- character()
  for (rep in seq_len(reps)) {
    row <- synthetic_common(columns, "latency", "c2c", "glibc", cpus, cpus, rep)
    row <- synthetic_timed(row, 100, 1000)
    row$row_id <- sprintf("%016x", start + length(rows) + 1)
    rows <- c(rows, list(row))
    for (state in names(SYNTHETIC_TRUTH$penalty)) for (from in seq_len(cpus) - 1) for (to in seq_len(cpus) - 1) {
      if (from == to) next
      matrix <- c(matrix, sprintf("%s,%d,%d,%s,%.3f", row$row_id, from, to, state,
                                  SYNTHETIC_TRUTH$penalty[[state]] * synthetic_noise(0.03)))
    }
  }
  list(rows = rows, matrix = matrix)
}

#' A simulated row of the anatomy kernel with its metrics: `counts` of malloc, the same and one more of free.
#' @param counts instructions, loads, stores, atomics, lines, fast_ratio, mean_instructions
synthetic_anatomy_row <- function(columns, id, allocator, size, heap, counts, ...) {
  row <- synthetic_common(columns, "fastpath-anatomy", "anatomy", allocator, 1, 8, 1, row_id = id, size_min = size,
                          size_max = size, heap_state = heap, sim_mode = "weave", sim_quantum = 1000, l1d_access = 2000,
                          l1d_miss = 3)
  row$counters <- "sim"
  given <- list(...)
  row[names(given)] <- given
  names <- c("instructions", "loads", "stores", "atomics", "lines", "fast_ratio", "mean_instructions")
  of <- function(call, values) sprintf("%s,%s_%s,count,%s,", id, call, names, values)
  list(row = row, metrics = c(of("malloc", counts), of("free", counts + c(1, 1, 1, 0, 1, 0, 1))))
}

synthetic_anatomy <- function(columns, reps) {
  parts <- list()
  for (size in c(64, 4096)) for (rep in seq_len(reps)) for (i in seq_along(SYNTHETIC_TRUTH$allocators)) {
    parts <- c(parts, list(synthetic_anatomy_row(columns, sprintf("%016x", length(parts) + 1), SYNTHETIC_TRUTH$allocators[i],
                                                 size, "warm", c(20 * i, 5 * i, 2 * i, i %/% 5, 4, 0.99, 20.5 * i), rep = rep)))
  }
  list(rows = lapply(parts, `[[`, "row"), metrics = unlist(lapply(parts, `[[`, "metrics")))
}

#' A row of the simulated machine with 64 cores: counts an operation of `each`, which are columns of runs.csv.
#' @return list(row, metrics)
synthetic_simulated <- function(columns, id, sweep, kernel, allocator, threads, rep, each, mode = "weave",
                                quantum = if (mode == "weave") 1000 else 50, ops = 100, ...) {
  row <- synthetic_common(columns, sweep, kernel, allocator, threads, 64, rep, row_id = id, sim_mode = mode,
                          sim_quantum = quantum, ops_per_thread = ops, ops = ops * threads)
  row$counters <- "sim"
  row$counters_reason <- ""
  row[names(each)] <- lapply(each, function(x) round(x * ops * threads))
  given <- list(...)
  row[names(given)] <- given
  list(row = row, metrics = sprintf("%s,param.machine,,big-4x16,", id))
}

#' Counts an operation that an allocator has: false sharing as SYNTHETIC_TRUTH has it, more L3 misses the more of it.
synthetic_counts <- function(i, threads) {
  false <- (SYNTHETIC_TRUTH$false_sharing[i] - 1) * log2(threads) * synthetic_noise(0.05)
  c(l3_access = 8 + false, l3_miss = 2 + i / 10, sim_false_sharing = false, sim_true_sharing = 0.5 * (threads > 1),
    sim_cross_node = false / 4 * (threads > 16))
}

synthetic_parts <- function(parts) list(rows = lapply(parts, `[[`, "row"), metrics = unlist(lapply(parts, `[[`, "metrics")))

synthetic_id <- function(parts) sprintf("%016x", length(parts) + 1)

synthetic_coherence <- function(columns, reps) {
  parts <- list()
  cells <- data.frame(kernel = c("churn", "churn", "churn", "churn", "false_active", "false_passive"),
                      touch = c("none", "none", "page", "page", "", ""), threads = c(8, 64, 8, 64, 64, 64))
  for (k in seq_len(nrow(cells))) for (rep in seq_len(reps)) for (i in seq_along(SYNTHETIC_TRUTH$allocators)) {
    each <- synthetic_counts(i, cells$threads[k])
    parts <- c(parts, list(synthetic_simulated(
      columns, synthetic_id(parts), "coherence", cells$kernel[k], SYNTHETIC_TRUTH$allocators[i], cells$threads[k], rep, each,
      touch = cells$touch[k], live_blocks = if (cells$kernel[k] == "churn") 100 else "",
      l3_miss_ratio = sprintf("%.6f", each[["l3_miss"]] / each[["l3_access"]])
    )))
  }
  synthetic_parts(parts)
}

#' Rows of churn at the default quantum, half and twice of it: counts fall by a tenth from each to the next.
synthetic_quantum <- function(columns, sweep, mode, base, reps) {
  parts <- list()
  for (step in -1:1) for (rep in seq_len(reps)) for (i in 1:2) {
    each <- c(synthetic_counts(i, 64), sim_cycles_per_op = 1) * 0.9^step
    row <- synthetic_simulated(columns, synthetic_id(parts), sweep, "churn", SYNTHETIC_TRUTH$allocators[i], 64, rep, each, mode,
                               base * 2^step, live_blocks = 100)
    row$row$sim_cycles_per_op <- sprintf("%.4f", 500 * i * 0.9^step * synthetic_noise())
    parts <- c(parts, list(row))
  }
  synthetic_parts(parts)
}

synthetic_times <- function(columns, reps) {
  parts <- list()
  for (threads in c(1, 4, 16)) for (rep in seq_len(reps)) for (i in seq_along(SYNTHETIC_TRUTH$allocators)) {
    part <- synthetic_simulated(columns, synthetic_id(parts), "timed", "churn", SYNTHETIC_TRUTH$allocators[i], threads, rep,
                                synthetic_counts(i, threads), "timed", live_blocks = 100)
    ns <- (SYNTHETIC_TRUTH$base[i] + SYNTHETIC_TRUTH$residual[i] * (threads > 1)) * synthetic_noise(0.03)
    values <- c(sim_ops_per_s = threads * 1e9 / ns, sim_lat_malloc_p50_ns = ns / 2, sim_lat_malloc_p99_ns = 8 * ns,
                sim_lat_malloc_p999_ns = 20 * ns, sim_lat_samples = 100000, sim_lat_overhead_ns = 2)
    part$metrics <- c(part$metrics, sprintf("%s,%s,x,%.3f,", part$row$row_id, names(values), values))
    parts <- c(parts, list(part))
  }
  synthetic_parts(parts)
}

# Cycles and lines an operation: the truth behind the simulated rows of the cost model. metadata steps at `step` bytes; the lock
# is a closed queue.
SYNTHETIC_MODEL <- data.frame(
  allocator = c("glibc", "mimalloc", "tlfl", "tlfl-locked", "tlfl-packed", "tlfl-remote"),
  small = c(146, 60, 48, 108, 48, 48), large = c(316, 126, 60, 120, 60, 60), step = c(1024, 512, 1024, 1024, 1024, 1024),
  further = c(50, 44, 40, 40, 40, 40), service = c(0, 0, 0, 400, 0, 0), false = c(0, 0, 0, 0, 0.2, 0),
  node = c(0, 0, 0, 0, 0, 0.08)
)
SYNTHETIC_MACHINE <- paste0("nodes=4,cores_per_node=16,mhz=2000,l1=32768:8:4,l2=524288:8:12,l3=33554432:16:39,",
                            "cache_local=185,cache_remote=250,memory_local=220,memory_remote=244")
SYNTHETIC_MODEL_SIZES <- c(16, 64, 128, 256, 512, 768, 1024, 1280, 2048, 3072, 4096)

synthetic_step <- function(truth, size) ifelse(size <= truth$step, truth$small, truth$large)

#' T_metadata over the sizes of the whole, as the fit draws it between the sizes that were measured.
synthetic_mix <- function(truth) {
  mean(stats::approx(log2(SYNTHETIC_MODEL_SIZES), synthetic_step(truth, SYNTHETIC_MODEL_SIZES), seq(4, 12, length.out = 513))$y)
}

#' Terms of the whole at n threads.
synthetic_terms <- function(truth, n) {
  out <- c(metadata = synthetic_mix(truth), further = truth$further, memory = 8 + 0.1 * 216,
           alpha = 362 * truth$false * (n > 1), node = 24 * truth$node * (n > 1))
  single <- sum(out[c("metadata", "further", "memory")])
  think <- max(1, single - truth$service)
  c(out, lock = if (truth$service > 0) queue_time(think, truth$service, n) - think - truth$service else 0)
}

#' A launch of the whole.
synthetic_whole <- function(columns, id, sweep, truth, n, rep, ops = 3000) {
  terms <- synthetic_terms(truth, n)
  instr <- (terms[["metadata"]] + terms[["further"]]) * synthetic_noise(0.003)
  lock <- terms[["lock"]] * synthetic_noise(0.02) + stats::rnorm(1, 0, 1)
  false <- truth$false * (n > 1) * synthetic_noise(0.05)
  node <- truth$node * (n > 1)
  each <- c(instructions = instr, l1d_miss = 1.1 + false, l3_access = 0.1 + false, l3_miss = 0.1, hitm_local = false,
            hitm_remote = 0, sim_true_sharing = 0, sim_false_sharing = false, sim_dram_local = 0.1 - node, sim_dram_remote = node)
  part <- synthetic_simulated(columns, id, sweep, "churn", truth$allocator, n, rep, each, "timed", ops = ops, size_min = 16,
                              size_max = 4096, size_dist = "loguniform", live_blocks = 100, touch = "line")
  part$row$sim_cycles_per_op <- sprintf("%.4f", instr + terms[["memory"]] + false * 362 + node * 24 + lock)
  part$metrics <- c(part$metrics, sprintf("%s,sim_upgrades,count,%.0f,", id, false * ops * n),
                    sprintf("%s,sim_machine,,\"%s\",", id, SYNTHETIC_MACHINE))
  part
}

#' A launch of the fast path.
synthetic_fast <- function(columns, id, sweep, truth, size, rep) {
  cycles <- synthetic_step(truth, size) * synthetic_noise(0.001)
  each <- c(instructions = cycles, l1d_miss = 0, l3_access = 0, l3_miss = 0, hitm_local = 0, hitm_remote = 0,
            sim_true_sharing = 0, sim_false_sharing = 0, sim_dram_local = 0, sim_dram_remote = 0)
  part <- synthetic_simulated(columns, id, sweep, "fastpath", truth$allocator, 1, rep, each, "timed", variant = "pair",
                              size_min = size, size_max = size, size_dist = "fixed", heap_state = "warm")
  part$row$sim_cycles_per_op <- sprintf("%.4f", cycles)
  part$metrics <- c(part$metrics, sprintf("%s,sim_upgrades,count,0,", id))
  part
}

#' Rows of the cost model's sweeps on the simulated machine.
#' @return list by sweep of list(rows, metrics)
synthetic_model <- function(columns, reps) {
  truth <- split(SYNTHETIC_MODEL, seq_len(nrow(SYNTHETIC_MODEL)))
  of <- function(names) truth[SYNTHETIC_MODEL$allocator %in% names]
  collect <- function(cells, make) {
    parts <- list()
    for (i in seq_len(nrow(cells))) for (rep in seq_len(reps)) for (one in of(cells$allocator[i])) {
      parts <- c(parts, list(make(synthetic_id(parts), one, cells[i, ], rep)))
    }
    synthetic_parts(parts)
  }
  variants <- c("tlfl", "tlfl-locked", "tlfl-packed", "tlfl-remote")
  all <- SYNTHETIC_MODEL$allocator
  planted <- rbind(expand.grid(allocator = variants, n = 4, size = NA, stringsAsFactors = FALSE),
                   expand.grid(allocator = variants, n = 1, size = 64, stringsAsFactors = FALSE))
  list("model-sim" = collect(expand.grid(allocator = all, n = c(1, 2, 4, 8, 16), stringsAsFactors = FALSE),
                             function(id, one, cell, rep) synthetic_whole(columns, id, "model-sim", one, cell$n, rep)),
       "fastpath-sim" = collect(expand.grid(allocator = all, size = SYNTHETIC_MODEL_SIZES, stringsAsFactors = FALSE),
                                function(id, one, cell, rep) synthetic_fast(columns, id, "fastpath-sim", one, cell$size, rep)),
       "variants-sim" = collect(planted, function(id, one, cell, rep) {
         if (is.na(cell$size)) synthetic_whole(columns, id, "variants-sim", one, cell$n, rep)
         else synthetic_fast(columns, id, "variants-sim", one, cell$size, rep)
       }))
}

#' A listing as ak disasm prints it.
#' @param marks of each instruction: letters of l load, s store, a atomic, t thread-local, b branch
synthetic_listing <- function(root, allocator, call, text, marks = rep("", length(text))) {
  has <- function(letter) grepl(letter, marks, fixed = TRUE)
  dir.create(file.path(root, "disasm"), showWarnings = FALSE)
  path <- data.frame(text = text, load = has("l"), store = has("s"), atomic = has("a"), thread_local = has("t"),
                     branch = has("b"))
  jsonlite::write_json(list(allocator = allocator, allocator_version = "1.2_3", op = call, size = "64", heap_state = "warm",
                            calls = 1000, fast_ratio = 0.95, path = path),
                       file.path(root, "disasm", paste0(allocator, "-", call, ".json")), auto_unbox = TRUE)
}

#' The parser: mimalloc takes 0.8 of glibc's time; its shares, in a sweep under a profiler.
#' @return list(ndjson, share) of list(rows, metrics)
synthetic_applications <- function(columns, cpus, reps) {
  of <- function(sweep, profiled) {
    parts <- list()
    for (rep in seq_len(reps)) for (allocator in c("glibc", "mimalloc")) {
      row <- synthetic_common(columns, sweep, "ndjson", allocator, 1, cpus, rep, row_id = synthetic_id(parts))
      row <- synthetic_timed(row, (if (allocator == "glibc") 1000 else 800) * synthetic_noise(), 100000)
      row$rss_peak_bytes <- round(1e8 * synthetic_noise())
      shares <- if (profiled) c(malloc_share = if (allocator == "glibc") 0.38 else 0.07, libc_share = 0.4, share_samples = 1000)
      parts <- c(parts, list(list(row = row, metrics = c(
        sprintf("%s,param.retain,count,0,", row$row_id),
        if (profiled) sprintf("%s,%s,x,%.4f,", row$row_id, names(shares), shares * synthetic_noise())))))
    }
    synthetic_parts(parts)
  }
  list(ndjson = of("ndjson", FALSE), share = of("ndjson-share", TRUE))
}

#' A lock that is always wanted, on one thread and on all CPUs: alone 100 ns a round, 150 more to hand it over.
synthetic_locks <- function(columns, cpus, reps) {
  parts <- list()
  for (n in c(1, cpus)) for (rep in seq_len(reps)) {
    row <- synthetic_common(columns, "lock_hold", "lock_hold", "glibc", n, cpus, rep, row_id = synthetic_id(parts),
                            variant = "mcs")
    row <- synthetic_timed(row, n * (100 + 150 * (n > 1)) * synthetic_noise(), 200000 / n)
    values <- c(param.hold = 30, param.think = 0, param.lines = 1, step_ns = 1, handover_ratio = as.numeric(n > 1))
    parts <- c(parts, list(list(row = row, metrics = sprintf("%s,%s,x,%g,", row$row_id, names(values), values))))
  }
  synthetic_parts(parts)
}

#' The whole root: paper, contention, fastpath, fastpath-anatomy, falseshare, remote, latency, and those of the simulated
#' machine; with some failed rows.
#' Launches of two allocators on two traces played back: the look before the first call, one more, four at 1 to 4 MB of
#' glibc, 2 to 8 of tlfl, with 0.5 to 2 that live, and one at the end.
synthetic_replay <- function(columns, cpus, reps) {
  made <- list(rows = list(), metrics = character(), timeline = character())
  for (trace in c("gcc", "/tmp/my.trace")) for (allocator in c("glibc", "tlfl")) for (rep in seq_len(reps)) {
    row <- synthetic_timed(synthetic_common(columns, "replay-memory", "replay", allocator, 1, cpus, rep, touch = "all"), 50, 1000)
    row$row_id <- id <- sprintf("%016x", length(made$rows) + 1)
    made$rows <- c(made$rows, list(row))
    made$metrics <- c(made$metrics, sprintf("%s,%s,,%s,", id, c("param.trace", "timeline_first", "timeline_looks", "trace_calls"),
                                            c(trace, 2, 4, 12345)))
    more <- if (allocator == "glibc") 1e6 else 2e6
    resident <- c(5e6, 5.1e6, 5e6 + more * 1:4, 5e6)
    live <- c(0, 0, 5e5 * 1:4, 0)
    made$timeline <- c(made$timeline, sprintf("%s,%d,%.0f,%.0f,%.0f", id, seq_along(live), resident, live, live))
  }
  made
}

write_synthetic <- function(root, contract, cpus = 4, reps = 8, seed = 1) {
  set.seed(seed)
  columns <- contract[["runs.csv"]]$column
  paper <- synthetic_churn(columns, "paper", c(1, 64), cpus, reps, c(300, 1000), hist_samples = 5000)
  contention <- synthetic_churn(columns, "contention", c(1, 2, 4, 8, 64), cpus, reps, 1000)
  null <- synthetic_null(columns, "contention", c(1, 2, 4, 64), cpus, reps, length(contention$rows))
  c2c <- synthetic_c2c(columns, cpus, reps, 0)
  for (k in c(3, 7)) {
    contention$rows[[k]]$status <- "crash"
    contention$rows[[k]]$status_detail <- "signal 11 in \"lib_x\", 100% of runs #1 at C:\\odd & so ^on~"
    contention$rows[[k]]$ops_per_s <- 1e12
    contention$rows[[k]]$wall_ns <- 1
  }
  put <- function(name, ...) synthetic_write(file.path(root, name), contract, ...)
  put("paper", paper$rows, paper$hist)
  put("contention", c(contention$rows, null$rows), c(contention$hist, null$hist))
  put("fastpath", synthetic_fastpath(columns, cpus, reps))
  sharing <- synthetic_falseshare(columns, cpus, reps)
  put("falseshare", sharing$rows, metrics = sharing$metrics)
  anatomy <- synthetic_anatomy(columns, min(reps, 2))
  put("fastpath-anatomy", anatomy$rows, metrics = anatomy$metrics)
  for (allocator in c("mimalloc", "tlfl")) for (call in c("malloc", "free")) {
    synthetic_listing(root, allocator, call, c("mov %fs:(%rax),%rdi", "cmp $0x400,%rsi", "ret"), c("lt", "", "lb"))
  }
  simulated <- list(coherence = synthetic_coherence(columns, reps), timed = synthetic_times(columns, reps),
                    quantum = synthetic_quantum(columns, "quantum", "weave", 1000, reps),
                    slack = synthetic_quantum(columns, "slack", "timed", 50, reps))
  simulated <- c(simulated, synthetic_model(columns, reps))
  for (name in names(simulated)) put(name, simulated[[name]]$rows, metrics = simulated[[name]]$metrics)
  put("remote", synthetic_remote(columns, cpus, reps))
  apps <- synthetic_applications(columns, cpus, reps)
  put("ndjson", apps$ndjson$rows, metrics = apps$ndjson$metrics)
  put("ndjson-share", apps$share$rows, metrics = apps$share$metrics)
  locks <- synthetic_locks(columns, cpus, reps)
  put("lock_hold", locks$rows, metrics = locks$metrics)
  replay <- synthetic_replay(columns, cpus, reps)
  put("replay-memory", replay$rows, metrics = replay$metrics, timeline = replay$timeline)
  put("latency", c2c$rows, matrix = c2c$matrix)
}

if (!interactive() && sys.nframe() == 0) {
  out <- commandArgs(trailingOnly = TRUE)
  if (length(out) != 1) stop("usage: Rscript tests/R/synthetic.R OUT")
  source(file.path("analysis", "R", "main.R"))
  load_functions(file.path("analysis", "R"))
  write_synthetic(out, read_contract(file.path("experiments", "schema.md")))
}
