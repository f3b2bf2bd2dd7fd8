# Recorded programs played back: what the figure draws of timeline.csv and metrics.csv.

replay_results <- function(dir, reps = 3) {
  made <- synthetic_replay(run_columns(), 4, reps)
  read_rows(dir, made$rows, "replay-memory", metrics = made$metrics, timeline = made$timeline)
}

replay_registry <- function() complete_registry(read_registry(file.path(suite, "allocators", "registry.ini")), character())

test_that("looks are those of the memory pass, beyond the baseline", {
  results <- replay_results(local_folder())
  looks <- replay_looks(results, results$runs)
  expect_equal(nrow(looks), 2 * 2 * 3 * 4)
  expect_setequal(looks$trace, c("gcc", "my"))
  own <- looks[looks$allocator == "tlfl" & looks$trace == "my", ]
  medians <- replay_medians(own)
  expect_equal(medians$share, c(0.25, 0.5, 0.75, 1))
  expect_equal(medians$resident, 2e6 * 1:4)
  expect_equal(medians$live, 5e5 * 1:4)
  expect_equal(medians$launches, rep(3L, 4))
})

test_that("the figure has a panel a trace and a line an allocator, in MB", {
  figure <- figure_replay(replay_results(local_folder()), replay_registry())
  expect_null(figure$reason)
  blocks <- strsplit(paste(figure$files[["replay.dat"]], collapse = "\n"), "\n\n\n")[[1]]
  expect_length(blocks, 2 * (1 + 2))
  numbers <- function(block) as.numeric(strsplit(gsub("\n", " ", trimws(blocks[[block]])), " ")[[1]])
  expect_equal(numbers(1), c(rbind(25 * 1:4, 0.5 * 1:4)))
  expect_equal(numbers(6), c(rbind(25 * 1:4, 2 * 1:4)))
  expect_match(figure$files[["replay-labels-1.gp"]], "gcc, 12,345 calls", all = FALSE)
  expect_true(any(grepl("set label", figure$files[["replay-labels-2.gp"]])))
  expect_match(paste(figure$caption, collapse = " "), "n = 3 launches a line", fixed = TRUE)
})

test_that("nothing is drawn of what was not measured", {
  empty <- local_folder()
  expect_match(figure_replay(read_results(empty, contract), replay_registry())$reason, "no rows of the replay kernel")
  speed <- read_rows(local_folder(), list(plain_row(kernel = "replay")), "replay")
  expect_match(figure_replay(speed, replay_registry())$reason, "no row of the replay kernel has looks")
  skipped <- read_rows(local_folder(), list(plain_row(kernel = "replay", status = "skipped")), "replay-memory")
  expect_match(figure_replay(skipped, replay_registry())$reason, "1 skipped")
})
