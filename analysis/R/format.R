# Numbers as they are printed. Three significant digits: more would claim what the intervals deny.

#' @param x numbers
#' @param digits significant digits
#' @return text; NA gives NA
number_text <- function(x, digits = 3) {
  vapply(x, function(one) {
    if (!is.finite(one)) return(NA_character_)
    rounded <- signif(one, digits)
    decimals <- if (rounded == 0) 0 else max(0, digits - 1 - floor(log10(abs(rounded))))
    formatC(rounded, format = "f", digits = decimals, big.mark = if (abs(rounded) >= 10000) "," else "")
  }, "", USE.NAMES = FALSE)
}

#' "1 launch", "8 launches".
plural <- function(n, one, many = paste0(one, "s")) paste(count_text(n), if (n == 1) one else many)

#' "a", "a and b", "a, b and c".
and_list <- function(words) {
  n <- length(words)
  if (n < 2) return(paste(words))
  paste(paste(words[-n], collapse = ", "), "and", words[n])
}

#' A count, with thousands separated.
count_text <- function(x) ifelse(is.na(x), NA_character_, formatC(x, format = "d", big.mark = ","))

#' Bounds with the decimals that suit the largest of value and bounds.
bound_text <- function(bound, interval, digits = 3) {
  largest <- pmax(abs(interval$value), abs(interval$low), abs(interval$high))
  mapply(function(b, size) {
    if (!is.finite(b)) return(NA_character_)
    decimals <- if (size == 0) 0 else digits - 1 - floor(log10(signif(size, digits)))
    if (decimals < 0) b <- round(b, decimals)
    formatC(b, format = "f", digits = max(0, decimals), big.mark = if (abs(b) >= 10000) "," else "")
  }, bound, largest, USE.NAMES = FALSE)
}

#' A number in LaTeX: with a minus sign instead of a hyphen.
tex_number <- function(x, digits = 3) tex_minus(number_text(x, digits))
tex_minus <- function(text) sub("-", "$-$", text, fixed = TRUE)

#' A published number exactly as it was published.
published_text <- function(x) {
  vapply(x, function(one) {
    if (is.na(one)) return(NA_character_)
    format(one, digits = 15, big.mark = if (abs(one) >= 10000) "," else "")
  }, "")
}

# What stands in place of an interval; the method section says what it means.
few_tex <- function(interval = NULL) paste0("n$<$", least_of(interval))

#' An interval as "[low, high]", "(n<6)" where there are too few launches, "" where there is no value.
interval_tex <- function(interval) {
  ifelse(is.na(interval$value), "",
         ifelse(is.na(interval$low), paste0("(", few_tex(interval), ")"),
                paste0("[", tex_minus(bound_text(interval$low, interval)), ", ",
                   tex_minus(bound_text(interval$high, interval)), "]")))
}

#' A latency, as an upper bound where the clock cannot resolve it.
#' @param value ns
#' @param clock_overhead ns, of the same launches
latency_tex <- function(value, clock_overhead) {
  bound <- !is.na(value) & !is.na(clock_overhead) & value < OVERHEAD_FACTOR * clock_overhead
  paste0(ifelse(bound, "$\\le$ ", ""), number_text(value))
}

#' "8" or "6--8": the range of launches behind the points of a figure; "0" where there are none.
launches_text <- function(n) {
  n <- n[!is.na(n) & n > 0]
  if (length(n) == 0) return("0")
  if (min(n) == max(n)) return(count_text(min(n)))
  paste0(count_text(min(n)), "--", count_text(max(n)))
}

#' "n = 6--8 launches" of a caption.
launches_phrase <- function(n, one = "launch", many = "launches") {
  text <- launches_text(n)
  paste("n =", text, if (text == "1") one else many)
}
