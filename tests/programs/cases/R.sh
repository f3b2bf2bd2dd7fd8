#!/bin/sh
# models, sorting, a bootstrap
# needs: Rscript
# size: short
Rscript --vanilla -e '
  d <- read.table(Sys.getenv("LINES_FILE"), nrows = 50000)
  m <- tapply(d$V1, d$V2, mean)
  print(summary(m)); print(coef(lm(V1 ~ V2 + I(V2^2), d))); set.seed(1)
  b <- replicate(200, median(sample(d$V1, replace = TRUE)))
  print(quantile(b)); l <- lapply(1:20000, function(i) rep(i, i %% 50)); gc(); print(sum(lengths(l)))' 2>&1 |
  grep -v -E 'used|cells'
