# Reading results folders: columns by name, missing ones refused, unknown ones reported, failed rows
# kept apart from numbers.

# Columns that folders made before there was a simulated machine do not have.
LATE_COLUMNS <- "sim_"

#' Read one CSV of a results folder.
#' @param file path
#' @param columns data.frame column, type of the contract
#' @param select optional columns to keep
#' @return data.frame with typed columns; "" is NA
read_results_csv <- function(file, columns, select = columns$column) {
  size <- file.info(file)$size
  if (is.na(size) || size == 0) usage_error(file, ": empty file; a header was expected")
  header <- scan(file, "", sep = ",", quote = "\"", nlines = 1, quiet = TRUE)
  missing <- setdiff(columns$column, header)
  late <- missing[startsWith(missing, LATE_COLUMNS)]
  missing <- setdiff(missing, late)
  if (length(missing) > 0) {
    usage_error(file, ": missing column", if (length(missing) > 1) "s", ": ", paste(missing, collapse = ", "))
  }
  unknown <- setdiff(header, columns$column)
  if (length(unknown) > 0) {
    warning(file, ": unknown columns are ignored: ", paste(unknown, collapse = ", "), call. = FALSE)
  }
  torn <- torn_line(file, size)
  classes <- ifelse(header %in% select, "character", "NULL")
  data <- tryCatch(
    utils::read.csv(if (is.null(torn)) file else text_of(torn), colClasses = classes, na.strings = "",
                    check.names = FALSE, encoding = "UTF-8", comment.char = ""),
    error = function(e) usage_error(file, ": not readable as CSV: ", conditionMessage(e))
  )
  for (name in intersect(names(data), columns$column[columns$type %in% c("integer", "decimal")])) {
    number <- suppressWarnings(as.numeric(data[[name]]))
    bad <- which(is.na(number) & !is.na(data[[name]]))
    if (length(bad) > 0) {
      usage_error(file, ":", bad[1] + 1, ": ", name, ": a number was expected, not '", data[[name]][bad[1]], "'")
    }
    data[[name]] <- number
  }
  number <- columns$type[match(late, columns$column)] %in% c("integer", "decimal")
  data[late] <- rep(list(NA_character_), length(late))
  data[late[number]] <- rep(list(NA_real_), sum(number))
  data[intersect(names(data), select)]
}

#' The complete lines of a file whose last line was cut off while it was written; NULL if none was.
torn_line <- function(file, size) {
  con <- file(file, "rb")
  on.exit(close(con))
  seek(con, size - 1)
  if (identical(readBin(con, "raw", 1), as.raw(10))) return(NULL)
  warning(file, ": the last line is torn and left out", call. = FALSE)
  lines <- readLines(file, warn = FALSE, encoding = "UTF-8")
  lines[-length(lines)]
}

text_of <- function(lines) textConnection(lines, encoding = "UTF-8")

#' Read runs.csv of one folder.
#' @return data.frame; row order as written; a row_id written twice keeps its last row
read_runs <- function(file, contract) {
  runs <- read_results_csv(file, contract[["runs.csv"]])
  strange <- setdiff(runs$status, STATUSES)
  if (length(strange) > 0) usage_error(file, ": status: unknown word '", strange[1], "'")
  refuse_impossible(file, runs, contract[["runs.csv"]])
  again <- duplicated(runs[c("run_id", "row_id")], fromLast = TRUE)
  if (any(again)) warning(file, ": ", sum(again), " rows were written again; the last of each counts", call. = FALSE)
  runs$line <- seq_len(nrow(runs)) + 1L
  runs[!again, , drop = FALSE]
}

# What a number of a row that ended well can be: these from 1 on, these above 0, those of unit 0..1 between them, these of
# any sign; all others from 0 on.
FROM_ONE <- c("threads", "cpus", "size_min", "size_max", "ops_per_thread", "rep", "ops", "wall_ns", "sim_quantum")
ABOVE_ZERO <- "ops_per_s"
ANY_SIGN <- "rss_overhead_bytes"
NEEDED <- c("threads", "cpus", "rep")

#' Refuse rows that ended well with what cannot be, and one launch that is there twice.
#' @param runs of runs.csv, in the order of its lines
refuse_impossible <- function(file, runs, columns) {
  ok <- runs$status %in% "ok"
  refuse <- function(wrong, name, say) {
    bad <- which(ok & wrong)
    if (length(bad) > 0) usage_error(file, ":", bad[1] + 1, ": ", name, ": ", say(bad[1]))
  }
  for (name in NEEDED) refuse(is.na(runs[[name]]), name, function(i) "empty in an ok row")
  for (name in setdiff(columns$column[columns$type %in% c("integer", "decimal")], ANY_SIGN)) {
    x <- runs[[name]]
    ratio <- columns$unit[columns$column == name] %in% c("0..1", "0 or 1")
    range <- if (ratio) "a number from 0 to 1" else if (name %in% ABOVE_ZERO) "a number above 0"
             else if (name %in% FROM_ONE) "a number from 1 on" else "a number from 0 on"
    low <- if (name %in% FROM_ONE) x < 1 else if (name %in% ABOVE_ZERO) x <= 0 else x < 0
    refuse(!is.na(x) & (!is.finite(x) | low | (ratio & x > 1)), name, function(i) {
      paste0("expected ", range, ", not ", format(x[i], digits = 15))
    })
  }
  refuse(!is.na(runs$rss_overhead_bytes) & !is.finite(runs$rss_overhead_bytes), "rss_overhead_bytes",
         function(i) "expected a number")
  id <- ifelse(ok, paste(runs$run_id, runs$row_id), NA)
  refuse(duplicated(id, incomparables = NA), "row_id", function(i) {
    paste0("the same launch is in line ", match(id[i], id) + 1, " already; take one of the two away")
  })
}

#' Refuse a repetition of a cell that is there under two row_ids: it would count twice. What a plan tells apart by options
#' that are no columns (the gap between samples, say) are two cells.
#' @param runs of one folder, with what the analysis adds to runs.csv, before launches of other machines are taken out
refuse_repeated <- function(file, runs) {
  ok <- ok_rows(runs)
  key <- cell_key(ok, c("run_id", "sweep", "allocator", "threads", "rep", "profiled", CELL_COLUMNS))
  again <- duplicated(key) & (is.na(ok$options) | duplicated(paste(key, ok$options)))
  if (!any(again)) return(invisible())
  one <- ok[again, , drop = FALSE][1, ]
  first <- ok$line[match(key[again][1], key)]
  usage_error(file, ":", one$line, ": row_id: repetition ", one$rep, " of ", one$kernel, " with ", one$allocator, " and ",
              plural(one$threads, "thread"), " is in line ", first, " already, under another row_id; take one of the two away")
}

#' A side file of one folder with the `key` of each line's launch; zero rows where the file is missing.
#' @param keys launches to which it is restricted: those that were committed; NULL: all
read_side <- function(folder, name, contract, keys = NULL) {
  columns <- side_columns(folder, contract[[name]])
  file <- file.path(folder, name)
  if (!file.exists(file) || file.info(file)$size == 0) {
    side <- as.data.frame(stats::setNames(rep(list(character()), nrow(columns)), columns$column))
  } else {
    side <- read_results_csv(file, columns)
  }
  side$key <- launch_keys(folder, side)
  side <- side[setdiff(names(side), "run_id")]
  if (is.null(keys)) side else side[side$key %in% keys, , drop = FALSE]
}

# ---- merged folders (ak merge): launches of several runs, whose row_ids may be the same ----

#' Where meta.json and plan.csv of each run of a folder lie, by run_id; the folder itself, by its name, where it is of one run.
run_folders <- function(folder) {
  parts <- sort(list.dirs(file.path(folder, "parts"), recursive = FALSE))
  if (length(parts) == 0) parts <- folder
  stats::setNames(parts, basename(parts))
}

is_merged <- function(folder) dir.exists(file.path(folder, "parts"))

side_columns <- function(folder, columns) {
  if (!is_merged(folder)) return(columns)
  rbind(columns[c("column", "type", "unit")], data.frame(column = "run_id", type = "text", unit = ""))
}

#' What tells launches of all folders apart: FOLDER/row_id, in a merged folder FOLDER/run_id:row_id.
#' @param rows of runs.csv or a side file
launch_keys <- function(folder, rows) {
  run <- if (is_merged(folder)) paste0(rows$run_id, ":") else rep("", nrow(rows))
  sprintf("%s/%s%s", rep(basename(folder), nrow(rows)), run, rows$row_id)
}

#' Apply a function to the rows of each run of a folder, and put what it says in the order of the rows.
#' @param tell function(folder of the run, its rows) -> a value a row
by_run <- function(folder, runs, tell) {
  own <- run_folders(folder)
  if (!is_merged(folder)) return(tell(own[[1]], runs))
  told <- rep(NA, nrow(runs))
  for (run in intersect(names(own), runs$run_id)) {
    mine <- runs$run_id %in% run
    told[mine] <- tell(own[[run]], runs[mine, , drop = FALSE])
  }
  told
}

#' Keep the launches of one machine: the same cell on two machines is two cells, and a model is of one machine.
#' @param results of read_results
#' @param machine its machine_id; "": that with the most ok launches, with a warning where there are others; "all": keep all
choose_machine <- function(results, machine) {
  rows <- all_launches(results)
  ids <- rows$machine_id[!is.na(rows$machine_id)]
  if (machine == "all" || length(unique(ids)) < 2 && machine %in% c("", ids)) return(results)
  if (machine == "") {
    counts <- table(factor(ids, sort(unique(ids))))
    well <- table(factor(ok_rows(rows)$machine_id, names(counts)))
    machine <- names(counts)[which.max(well)]
    warning(results$root, ": launches of ", length(counts), " machines; those of ", machine, " are read; AK_MACHINE=ID names ",
            "another of ", paste(names(counts), collapse = ", "), call. = FALSE)
  }
  if (!machine %in% ids) usage_error(results$root, ": no launch of machine ", machine, "; there are ",
                                     paste(sort(unique(ids)), collapse = ", "))
  keep <- rows$key[is.na(rows$machine_id) | rows$machine_id == machine]
  for (part in c("runs", "simulated", "metrics", "matrix")) {
    results[[part]] <- results[[part]][results[[part]]$key %in% keep, , drop = FALSE]
  }
  results$meta <- Filter(function(one) length(one$machine_id) == 0 || identical(one$machine_id, machine), results$meta)
  results
}

#' Read every results folder below a root (or the root itself, where it is one).
#' Histograms are read on demand by read_hist: they are by far the largest file.
#' @param root folder with one sub-folder a sweep
#' @param contract from read_contract
#' @return list: runs (all rows that this machine ran; `folder` and `key` added; kernel parameters as one text
#'   `params`; `confidence`, the level of their intervals; `profiled`: a profiler slowed the launch),
#'   simulated (likewise, those of the simulated machine: counts of another machine, and no times),
#'   metrics, matrix (with `key`), meta (by folder, of a merged folder by run), folders, root, contract
#' @param machine as in choose_machine
read_results <- function(root, contract, machine = Sys.getenv("AK_MACHINE")) {
  if (!dir.exists(root)) usage_error(root, ": no such folder")
  candidates <- c(root, sort(list.dirs(root, recursive = FALSE)))
  folders <- candidates[file.exists(file.path(candidates, "runs.csv"))]
  names(folders) <- basename(folders)
  meta <- lapply(unlist(lapply(unname(folders), run_folders)), read_meta)
  parts <- lapply(folders, function(folder) {
    runs <- read_runs(file.path(folder, "runs.csv"), contract)
    runs$folder <- rep(basename(folder), nrow(runs))
    runs$key <- launch_keys(folder, runs)
    metrics <- read_side(folder, "metrics.csv", contract, runs$key)
    runs$params <- row_params(metrics, runs$key)
    runs$profiled <- runs$key %in% metrics$key[metrics$name %in% PROFILE_METRICS]
    runs$work <- by_run(folder, runs, planned_work)
    runs$options <- by_run(folder, runs, planned_options)
    refuse_repeated(file.path(folder, "runs.csv"), runs)
    runs$line <- runs$options <- NULL
    runs$confidence <- by_run(folder, runs, function(run, own) rep(run_confidence(meta[[basename(run)]]), nrow(own)))
    matrix <- read_side(folder, "matrix.csv", contract, runs$key)
    list(runs = runs, metrics = metrics, matrix = matrix)
  })
  refuse_copies(lapply(parts, `[[`, "runs"), folders)
  bind <- function(what) do.call(rbind, unname(lapply(parts, `[[`, what)))
  runs <- bind("runs")
  if (is.null(runs)) runs <- empty_runs(contract)
  runs <- derive(runs)
  simulated <- is_simulated(runs)
  results <- list(runs = runs[!simulated, , drop = FALSE], simulated = runs[simulated, , drop = FALSE],
                  metrics = bind("metrics"), matrix = bind("matrix"), meta = meta,
                  folders = folders, root = root, contract = contract)
  choose_machine(results, machine)
}

#' Every launch, of this machine and of the simulated one: for what is told of launches and not measured.
all_launches <- function(results) rbind(results$runs, results$simulated)

#' TRUE for rows of the simulated machine, those that did not end well among them.
is_simulated <- function(runs) runs$counters %in% "sim" | !is.na(runs$sim_mode)

#' Refuse launches that lie in two folders: they would count twice.
#' @param runs data.frames by folder
#' @param folders their paths
refuse_copies <- function(runs, folders) {
  again <- which(duplicated(names(folders)))
  if (length(again) > 0) {
    first <- match(names(folders)[again[1]], names(folders))
    usage_error(folders[[first]], " and ", folders[[again[1]]], ": two results folders of one name; rename one")
  }
  launches <- lapply(runs, function(own) paste(own$run_id, own$row_id)[!is.na(own$run_id)])
  owner <- rep(seq_along(launches), lengths(launches))
  launches <- unlist(launches)
  again <- which(duplicated(launches))
  if (length(again) == 0) return(invisible())
  first <- owner[match(launches[again[1]], launches)]
  usage_error(folders[[first]], " and ", folders[[owner[again[1]]]], ": the same launches lie in both (",
              sum(owner[again] == owner[again[1]]), " of run ", sub(" .*", "", launches[again[1]]),
              "); take one of the two away")
}

empty_runs <- function(contract) {
  columns <- contract[["runs.csv"]]
  empty <- lapply(columns$type, function(type) if (type %in% c("integer", "decimal")) numeric() else character())
  runs <- as.data.frame(stats::setNames(empty, columns$column))
  runs$folder <- runs$key <- runs$params <- runs$work <- character()
  runs$confidence <- numeric()
  runs$profiled <- logical()
  runs
}

# What a launch under a profiler (`profile = yes` in a sweep) has in metrics.csv, with a reason where there is no value.
PROFILE_METRICS <- c("malloc_share", "libc_share", "share_samples")

#' Kernel parameters of each row as one text, "name=value name=value": part of a cell's identity.
row_params <- function(metrics, keys) {
  own <- metrics[startsWith(metrics$name, "param.") & !is.na(metrics$value), , drop = FALSE]
  own <- own[order(own$name), , drop = FALSE]
  if (nrow(own) == 0) return(rep("", length(keys)))
  text <- tapply(paste0(sub("^param[.]", "", own$name), "=", own$value), own$key, paste, collapse = " ")
  params <- as.character(text[keys])
  params[is.na(params)] <- ""
  params
}

#' How much work was asked for, as the plan put it: "N in total" (divided among the threads) or "N a thread". Tells the
#' two readings of a count apart, and keeps a sweep of one total together although the share of a thread varies.
planned_work <- function(folder, runs) {
  work <- sprintf("%.0f a thread", runs$ops_per_thread)
  work[is.na(runs$ops_per_thread)] <- NA_character_
  options <- planned_options(folder, runs)
  total <- grepl("(^| )ops_total=[0-9]", options)
  work[total] <- sub("(^|.* )ops_total=([0-9]+).*", "\\2 in total", options[total])
  work
}

#' The options that the plan has for each row, as text; NA where it has none.
planned_options <- function(folder, runs) {
  file <- file.path(folder, "plan.csv")
  none <- rep(NA_character_, nrow(runs))
  if (!file.exists(file)) return(none)
  plan <- utils::read.csv(file, colClasses = "character")
  if (!all(c("row_id", "options") %in% names(plan))) return(none)
  plan$options[match(runs$row_id, plan$row_id)]
}

# The kernel splits CPU time into user and system by the timer tick (1 to 4 ms): a shorter pass than this has a system
# time that is mostly chance, and it stays unknown.
OS_RESOLVED_NS <- 1e8

#' Columns that the analysis derives. ns_per_op is thread time: what one operation costs the thread that does it.
derive <- function(runs) {
  runs$ns_per_op <- runs$wall_ns * runs$threads / runs$ops
  runs$sys_ns_per_op <- ifelse(runs$wall_ns >= OS_RESOLVED_NS, runs$cpu_sys_ns / runs$ops, NA_real_)
  runs$faults_per_op <- (runs$minor_faults + runs$major_faults) / runs$ops
  runs$l3_miss_per_op <- runs$l3_miss / runs$ops
  runs$internal_bytes <- runs$usable_peak_bytes - runs$live_peak_bytes
  runs$external_bytes <- runs$rss_overhead_bytes - runs$internal_bytes
  runs
}

#' meta.json of a folder as nested lists; empty where missing or unreadable.
read_meta <- function(folder) {
  file <- file.path(folder, "meta.json")
  if (!file.exists(file)) return(list())
  tryCatch(jsonlite::fromJSON(file, simplifyVector = FALSE), error = function(e) {
    warning(file, ": not readable as JSON: ", conditionMessage(e), call. = FALSE)
    list()
  })
}

#' The description of the machine from the first folder that has one.
#' @param meta of read_results
#' @return list(facts, unknown): values by name, and why a value is not known
machine_of <- function(meta) {
  for (one in meta) if (length(one$machine) > 0) return(list(facts = one$machine, unknown = one$machine_unknown))
  list(facts = list(), unknown = list())
}

#' Number of NUMA nodes as recorded; NA where it is not.
node_count <- function(meta) {
  nodes <- machine_of(meta)$facts$numa_nodes
  if (length(nodes) == 0) NA_integer_ else length(nodes)
}

#' Histogram rows of some launches.
#' @param results from read_results
#' @param keys folder/row_id of the launches
#' @param call malloc, free, touch or pair
#' @return data.frame key, lower_ns, upper_ns, count
read_hist <- function(results, keys, call) {
  parts <- lapply(intersect(names(results$folders), unique(sub("/[^/]*$", "", keys))), function(folder) {
    file <- file.path(results$folders[[folder]], "hist.csv")
    if (!file.exists(file) || file.info(file)$size == 0) return(NULL)
    if (is.null(hist_cache[[file]])) hist_cache[[file]] <- read_side(dirname(file), "hist.csv", results$contract)
    hist <- hist_cache[[file]]
    hist[hist$call == call & hist$key %in% keys, c("key", "lower_ns", "upper_ns", "count"), drop = FALSE]
  })
  merged <- do.call(rbind, parts)
  if (is.null(merged)) {
    merged <- data.frame(key = character(), lower_ns = numeric(), upper_ns = numeric(), count = numeric())
  }
  merged
}

hist_cache <- new.env()

#' Rows that carry numbers: status ok, and nothing else.
ok_rows <- function(runs) runs[runs$status %in% "ok", , drop = FALSE]
