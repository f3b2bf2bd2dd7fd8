# What all intervals share: levels and limits, seeded resamples, and what counts as a replicate.
#
# A launch is the replicate; samples within one are not. Which interval where (the `method` column says it):
#   interval.R      one number of a set of launches: exact order statistics below BCA_LAUNCHES launches, BCa from there on
#   ratio.R         two sets paired by repetition: the same, of log ratios or differences
#   histogram.R     quantiles that only merged launches have samples enough for
#   parameters.R    whatever a fit returns
#   simultaneous.R  many at once
#   stopping.R      runs that stopped when an interval was narrow enough
# resample.R says how launches that share a layout are treated. Nothing has an interval below MIN_LAUNCHES.

CONFIDENCE <- 0.95
ALPHA <- 1 - CONFIDENCE # of tests
MIN_LAUNCHES <- 6L    # below: no interval at all. 6 is the least n whose extremes cover a median at 95 %
BCA_LAUNCHES <- 20L   # from here on BCa; below, its corrections are too noisy
BOOT_RESAMPLES <- 2000L
BOOT_TAIL_DRAWS <- 20 # a bootstrap bound needs as many draws beyond it; higher levels take order statistics
BOOT_SEED <- 20240607L

boot_cache <- new.env()

#' Evaluate code under a fixed seed and leave the caller's random state as it was.
#' @param seed integer
#' @param code evaluated lazily
with_seed <- function(seed, code) {
  had <- exists(".Random.seed", globalenv())
  if (had) old <- get(".Random.seed", globalenv())
  on.exit(if (had) assign(".Random.seed", old, globalenv()) else rm(".Random.seed", envir = globalenv()))
  set.seed(seed, kind = "Mersenne-Twister", normal.kind = "Inversion", sample.kind = "Rejection")
  force(code)
}

#' Bootstrap resamples of n launches: ranks drawn, n x BOOT_RESAMPLES, each column in order. The same for every call with the
#' same n and stream, so results depend neither on the order in which groups are computed nor on that of the launches.
#' @param n number of launches
#' @param stream separates independent samples that are combined
boot_ranks <- function(n, stream = 0L) {
  key <- paste(n, stream)
  if (is.null(boot_cache[[key]])) {
    drawn <- with_seed(BOOT_SEED + 1000L * stream + n, sample.int(n, n * BOOT_RESAMPLES, replace = TRUE))
    boot_cache[[key]] <- matrix(drawn[order(rep(seq_len(BOOT_RESAMPLES), each = n), drawn, method = "radix")], nrow = n)
  }
  boot_cache[[key]]
}

#' Quantiles of the bootstrap resamples of x.
#' @param p probability; quantiles as of sample_quantile
boot_quantiles <- function(x, p, stream = 0L) {
  ranks <- boot_ranks(length(x), stream)
  sorted <- sort(x)
  at <- quantile_rank(length(x), p)
  low <- sorted[ranks[floor(at), ]]
  low + (at - floor(at)) * (sorted[ranks[ceiling(at), ]] - low)
}

boot_medians <- function(x, stream = 0L) boot_quantiles(x, 0.5, stream)

#' The rank p (n + 1) of a quantile among n values (R's type 6), within them; a half rank is a mean of two.
quantile_rank <- function(n, p) min(max((n + 1) * p, 1), n)

#' A quantile of x; the median at 0.5.
sample_quantile <- function(x, p) {
  at <- quantile_rank(length(x), p)
  low <- sort(x)[c(floor(at), ceiling(at))]
  low[1] + (at - floor(at)) * (low[2] - low[1])
}

#' The quantile without one of the values, for each of them in the order of size.
jackknife_quantile <- function(x, p) {
  i <- seq_along(x)
  sorted <- sort(x)
  at <- quantile_rank(length(x) - 1, p)
  without <- function(rank) sorted[rank + (i <= rank)]
  without(floor(at)) + (at - floor(at)) * (without(ceiling(at)) - without(floor(at)))
}

#' What is independent among launches: the medians of their blocks, or the launches themselves.
#' @param x over launches; what is not finite was not measured and is dropped
#' @param block as block_of gives it, or NULL
#' @return list(x, words, few): words say how blocks were treated, "" without; few: x are launches of few blocks
replicates <- function(x, block = NULL) {
  keep <- is.finite(x)
  x <- x[keep]
  block <- block[keep]
  blocks <- length(unique(block))
  if (blocks < 2 || blocks == length(x)) return(list(x = x, words = "", few = FALSE))
  # Ranks of launches drawn evenly from few blocks vary less than of independent ones: order statistics of all stay safe.
  if (blocks < MIN_LAUNCHES) return(list(x = x, words = few_blocks(blocks), few = TRUE))
  list(x = as.numeric(tapply(x, block, stats::median)), words = many_blocks(blocks), few = FALSE)
}

few_blocks <- function(blocks) paste("within", plural(blocks, "block"), "and for these only")
many_blocks <- function(blocks) paste("of", blocks, "blocks")

#' A method with how blocks were treated.
method_text <- function(method, words) paste0(method, if (nzchar(words)) paste0(", ", words))
