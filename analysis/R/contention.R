# Models of what contention does to an operation's time, fitted to launches at several thread counts.
#
# Data: thread time an operation, T(n) = n / X(n), in ns, at n threads; X(n) is the throughput of all. The models:
#   none    T(n) = t1: no contention; what every other model has to beat
#   usl     X(n) = lambda n / (1 + sigma (n - 1) + kappa n (n - 1)), the Universal Scalability Law: lambda the throughput of one
#           thread, sigma what is serial, kappa what every pair of threads costs (Gunther, "Guerrilla capacity planning", 2007,
#           chapter 4). It describes a shape; its sigma and kappa are no times of a lock.
#   queue   a closed queue with one station, the machine-repairman model: a thread works for `think` ns outside the lock, then
#           waits its turn and holds it for `service` ns, by exact mean value analysis (Reiser and Lavenberg, "Mean-value analysis
#           of closed multichain queuing networks", 1980)
#   handover the same, but a lock passed to a waiter costs `handover` ns more than a free one, however many wait: queue locks,
#           where the next holder watches a line of its own
#   ticket  the same, but every waiter adds `each_waiter` ns to a hand-over: spinners on one line that all fetch it again
#           (Boyd-Wickizer, Kaashoek, Morris and Zeldovich, "Non-scalable locks are dangerous", 2012, section 3; their c / 2 is
#           each_waiter)
# The last two are a station whose service time depends on how many are there, k with the holder: service(k); solved by the
# probabilities of the birth and death chain, which for a closed queue with one station are exact (Lazowska et al.,
# "Quantitative system performance", 1984, section 8.2). All assume exponential times; a lock held for a fixed time waits less.
#
# One more has nothing of a hand-over to fit (handover.R): it is taken as lock_hold measured it.
#
# Fits minimise squared differences of log time, so that every thread count weighs alike; medians over launches, bounds of zero.

# The least that a parameter can be. Times of threads stay over 0: with exactly 0 outside the lock the chain has a single state
# and no derivative.
LEAST <- c(t1 = 1e-6, lambda = 1e-6, think = 1e-6, service = 1e-6, sigma = 0, kappa = 0, handover = 0, each_waiter = 0,
           takes = 1e-6)
# Below this singular value (of the Jacobian with columns of length 1) the data cannot tell a parameter from the others.
LEAST_SINGULAR <- 1e-5

CONTENTION_COLUMNS <- c(n = "threads", time = "ns_per_op")

#' Thread time by the Universal Scalability Law.
#' @param p c(lambda in Mop/s, sigma, kappa)
#' @param n thread counts
#' @return ns an operation
usl_time <- function(p, n) 1000 / p[1] * (1 + p[2] * (n - 1) + p[3] * n * (n - 1))

#' Thread time of a closed queue with one station, by exact mean value analysis.
#' @param think,service ns outside and inside the station
#' @param n whole numbers of threads
#' @return ns an operation: think, waiting and service
queue_time <- function(think, service, n) {
  time <- numeric(max(n))
  waiting <- 0
  for (i in seq_along(time)) {
    time[i] <- think + service * (1 + waiting)
    waiting <- i * (1 - think / time[i])
  }
  time[n]
}

#' What the states of closed queues weigh for the order of those outside: log(1 / (n - k)!), for thread counts n (columns) and k
#' threads at the station (rows, from 0).
queue_orders <- function(n) {
  key <- paste(n, collapse = " ")
  if (is.null(queue_cache[[key]])) {
    outside <- outer(0:max(n), n, function(k, n) n - k)
    queue_cache[[key]] <- ifelse(outside < 0, -Inf, -lgamma(pmax(outside, 0) + 1))
  }
  queue_cache[[key]]
}
queue_cache <- new.env()

#' Thread time of a closed queue with one station whose service depends on how many are there.
#' @param think ns outside the station, over 0
#' @param service ns with 1, 2, ... max(n) threads there
#' @param n whole numbers of threads
#' @return ns an operation
load_queue_time <- function(think, service, n) {
  orders <- queue_orders(n)
  here <- service[seq_len(nrow(orders) - 1)] / think
  served <- c(0, cumsum(log(here)))
  # Weights of the states to the larger of both ends, all outside and all inside: what lies between stays far from overflow.
  weight <- exp(orders + served - rep(pmax(orders[1, ], served[n + 1]), each = nrow(orders)))
  think * n * colSums(weight) / colSums(weight[-1, , drop = FALSE] / here)
}

#' Thread time where a contended lock costs more to pass than a free one.
#' @param p c(think, service, handover), ns
handover_time <- function(p, n) load_queue_time(p[1], p[2] + c(0, rep(p[3], max(n) - 1)), n)

#' Thread time where every waiter adds to the cost of passing the lock.
#' @param p c(think, service, each_waiter), ns
ticket_time <- function(p, n) load_queue_time(p[1], p[2] + p[3] * (seq_len(max(n)) - 1), n)

# label, units by parameter, time(p, n), and start(n, time): a guess from medians in order of n. From simple to complex: of
# models that predict alike the first is taken.
CONTENTION_MODELS <- list(
  none = list(label = "no contention", units = c(t1 = "ns"), time = function(p, n) rep(p[1], length(n)),
              start = function(n, time) exp(mean(log(time)))),
  queue = list(label = "closed queue", units = c(think = "ns", service = "ns"),
               time = function(p, n) queue_time(p[1], p[2], n), start = function(n, time) queue_start(n, time)),
  usl = list(label = "Universal Scalability Law", units = c(lambda = "Mop/s", sigma = "", kappa = ""), time = usl_time,
             start = function(n, time) usl_start(n, time)),
  handover = list(label = "closed queue with dearer hand-over", units = c(think = "ns", service = "ns", handover = "ns"),
                  time = handover_time, start = function(n, time) load_start(n, time, 2)),
  ticket = list(label = "closed queue with hand-over by waiters", units = c(think = "ns", service = "ns", each_waiter = "ns"),
                time = ticket_time, start = function(n, time) load_start(n, time, 10))
)

#' What a thread more adds to the time at the end of the curve: the station's service time, once it is never idle.
service_guess <- function(n, time) {
  last <- length(n)
  if (last < 2) return(time / 2)
  max(time[last] / 100, diff(time[c(last - 1, last)]) / diff(n[c(last - 1, last)]))
}

queue_start <- function(n, time) {
  service <- min(service_guess(n, time), 0.9 * time[1])
  c(time[1] - service, service)
}

#' A free lock at half the guess, and what is added to it at a part of the guess.
load_start <- function(n, time, part) c(queue_start(n, time) * c(1, 0.5), service_guess(n, time) / part)

#' The law is linear in 1/lambda, sigma/lambda and kappa/lambda: relative least squares, then what is negative goes to a little.
usl_start <- function(n, time) {
  terms <- cbind(1, n - 1, n * (n - 1))
  b <- tryCatch(qr.coef(qr(terms / time), rep(1, length(n))), error = function(e) NULL)
  if (is.null(b) || !all(is.finite(b)) || b[1] <= 0) b <- c(time[1], time[1] / 100, 0)
  c(1000 / b[1], pmax(b[2:3] / b[1], 1e-4))
}

#' Median time at each thread count.
#' @param rows launches with the columns of CONTENTION_COLUMNS
#' @return list(n, time, launches), in order of n
contention_medians <- function(rows) {
  n <- .subset2(rows, CONTENTION_COLUMNS[["n"]])
  time <- .subset2(rows, CONTENTION_COLUMNS[["time"]])
  keep <- which(is.finite(time) & time > 0)
  keep <- keep[order(n[keep], time[keep], method = "radix")] # one sort for all medians: this runs in every resample
  n <- n[keep]
  first <- which(!duplicated(n))
  launches <- diff(c(first, length(n) + 1))
  list(n = n[first], time = (time[keep[first + (launches - 1) %/% 2]] + time[keep[first + launches %/% 2]]) / 2,
       launches = launches)
}

#' Fit one model.
#' @param medians of contention_medians
#' @param model name in CONTENTION_MODELS
#' @param start parameters to begin at, near the fit: then it is not asked again whether the data can tell them apart; NULL: a
#'   guess of the model's own
#' @param models where the name is looked for; of one with several forms the one is taken that fits best
#' @return list(model, parameters (named), fitted (ns at medians$n), rms (of log time), time (of the shape), form (its label
#'   where there are several), reason: "" or why the parameters are NA or cannot be told apart)
fit_contention <- function(medians, model, start = NULL, models = CONTENTION_MODELS) {
  shape <- models[[model]]
  if (is.null(shape$forms)) return(fit_shape(medians, model, shape, start))
  fits <- lapply(shape$forms, function(form) c(fit_shape(medians, model, form, start), list(form = form$label)))
  rms <- vapply(fits, `[[`, 0, "rms")
  fits[[if (all(is.na(rms))) 1 else which.min(rms)]]
}

#' Fit one shape.
fit_shape <- function(medians, model, shape, start) {
  names <- names(shape$units)
  failed <- function(reason) {
    list(model = model, parameters = stats::setNames(rep(NA_real_, length(names)), names), fitted = NA * medians$n,
         rms = NA_real_, time = shape$time, reason = reason)
  }
  if (length(medians$n) < length(names)) {
    return(failed(sprintf("not identifiable here: %s for %s", plural(length(medians$n), "thread count"),
                          plural(length(names), "parameter"))))
  }
  if (!requireNamespace("minpack.lm", quietly = TRUE)) return(failed("the R package minpack.lm is not installed"))
  guess <- if (is.null(start)) shape$start(medians$n, medians$time) else start
  low <- LEAST[names]
  target <- log(medians$time)
  # Where a parameter runs to its bound along a valley, the fit ends unfinished with a warning: that is told as the reason.
  out <- tryCatch(suppressWarnings(minpack.lm::nls.lm(pmax(guess, low), lower = low, control = FIT_CONTROL(), fn = function(p) {
    log(shape$time(p, medians$n)) - target
  })), error = function(e) NULL)
  if (is.null(out) || !out$info %in% 1:4) {
    return(failed(paste("not identifiable here: least squares did not settle on", and_list(names))))
  }
  parameters <- stats::setNames(as.numeric(out$par), names)
  list(model = model, parameters = parameters, fitted = shape$time(parameters, medians$n), rms = sqrt(mean(out$fvec^2)),
       time = shape$time, reason = if (is.null(start)) inseparable(out$hessian, parameters, low) else "")
}

FIT_CONTROL <- function() minpack.lm::nls.lm.control(maxiter = 100, ftol = 1e-9, ptol = 1e-9)

#' Which parameters the data cannot tell apart.
#' @param hessian twice the product of the Jacobian with itself, at the fit
#' @return "" or the reason
inseparable <- function(hessian, parameters, low) {
  free <- parameters > low
  if (sum(free) == 0) return("")
  product <- hessian[free, free, drop = FALSE]
  size <- sqrt(diag(product))
  flat <- !(size > 0)
  if (any(flat)) return(paste("not identifiable here:", and_list(names(parameters)[free][flat]), "changes nothing"))
  parts <- eigen(product / outer(size, size), symmetric = TRUE)
  last <- length(size)
  if (sqrt(max(0, parts$values[last])) >= LEAST_SINGULAR) return("")
  together <- abs(parts$vectors[, last]) > 0.1
  paste("not identifiable here:", and_list(names(parameters)[free][together]), "act alike at these thread counts")
}

#' Time that a fit predicts.
#' @param fit of fit_contention
#' @param n thread counts
predict_contention <- function(fit, n) unname(fit$time(fit$parameters, n))

#' Intervals of a model's parameters and of its predictions, over launches drawn within thread counts.
#' @param rows launches with the columns of CONTENTION_COLUMNS
#' @param model name in CONTENTION_MODELS
#' @param predict thread counts to predict, lines "T(n)"
#' @param ... of bootstrap_parameters
#' @return as bootstrap_parameters, with `unit`; a parameter that cannot be told from another has no number, and the reason
contention_intervals <- function(rows, model, predict = numeric(), ...) {
  rows <- rows[is.finite(rows[[CONTENTION_COLUMNS[["time"]]]]), , drop = FALSE]
  units <- CONTENTION_MODELS[[model]]$units
  whole <- fit_contention(contention_medians(rows), model)
  level <- confidence_of(rows)
  out <- bootstrap_parameters(rows[intersect(names(rows), c(CONTENTION_COLUMNS, BLOCK_COLUMNS))], function(rows, start) {
    fit <- if (is.null(start)) whole else fit_contention(contention_medians(rows), model, start[names(units)])
    c(fit$parameters, if (length(predict) > 0) stats::setNames(predict_contention(fit, predict), sprintf("T(%g)", predict)))
  }, by = CONTENTION_COLUMNS[["n"]], confidence = level, ...)
  out$unit <- c(units, rep("ns", length(predict)))
  if (nzchar(whole$reason)) {
    own <- out$parameter %in% names(units)
    out[own, c("value", "low", "high")] <- NA_real_
    out$reason[own] <- whole$reason
  }
  out
}

#' Choose a model by how well it predicts thread counts that it was not fitted to: each is left out in turn, and the simplest is
#' taken of those whose error the noise of the medians cannot tell from the least one.
#' @param rows launches with the columns of CONTENTION_COLUMNS
#' @param models as CONTENTION_MODELS, the simplest first
#' @return data.frame model, label, parameters (how many), rms and worst (of log time out of sample, about the relative error),
#'   worst_n (where), last (relative error at the most threads, predicted from fewer), rms_in (of the fit to all), form, chosen,
#'   reason
choose_contention <- function(rows, models = CONTENTION_MODELS) {
  medians <- contention_medians(rows)
  out <- do.call(rbind, lapply(names(models), judge_contention, medians = medians, models = models))
  good <- is.finite(out$rms)
  close <- good & out$rms^2 <= suppressWarnings(min(out$rms[good]))^2 + mean(median_noise(rows)^2)
  out$chosen <- seq_along(close) %in% which(close)[1]
  out
}

#' One line of choose_contention.
judge_contention <- function(model, medians, models) {
  parameters <- if (is.null(models[[model]]$parameters)) length(models[[model]]$units) else models[[model]]$parameters
  line <- data.frame(model = model, label = models[[model]]$label, parameters = parameters, rms = NA_real_, worst = NA_real_,
                     worst_n = NA_real_, last = NA_real_, rms_in = NA_real_, form = "", reason = "")
  if (length(medians$n) < parameters + 1) {
    line$reason <- sprintf("not judged: %s, and leaving one out takes %d", plural(length(medians$n), "thread count"),
                           parameters + 1)
    return(line)
  }
  whole <- fit_contention(medians, model, models = models)
  left <- vapply(seq_along(medians$n), function(i) {
    fit <- fit_contention(lapply(medians, `[`, -i), model, models = models)
    log(predict_contention(fit, medians$n[i]) / medians$time[i])
  }, 0)
  if (!all(is.finite(left))) {
    line$reason <- if (nzchar(whole$reason)) whole$reason else "no fit without one of the thread counts"
    return(line)
  }
  line[c("rms", "worst", "worst_n", "last", "rms_in", "form")] <-
    list(sqrt(mean(left^2)), max(abs(left)), medians$n[which.max(abs(left))], expm1(left[length(left)]), whole$rms,
         if (is.null(whole$form)) "" else whole$form)
  line
}

#' Standard errors of the logs of the medians, by thread count, as of normal samples; 0 with a single launch.
median_noise <- function(rows) {
  spread <- tapply(log(rows[[CONTENTION_COLUMNS[["time"]]]]), rows[[CONTENTION_COLUMNS[["n"]]]], function(x) {
    x <- x[is.finite(x)]
    if (length(x) < 2) 0 else sqrt(pi / 2 / length(x)) * stats::sd(x)
  })
  as.numeric(spread)
}
