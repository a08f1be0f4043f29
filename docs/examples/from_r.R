# hcpf from R, through reticulate: fit a sparse matrix of R, look at the factors, recommend.
# Tell reticulate which Python has hcpf, for example: RETICULATE_PYTHON=.venv/bin/python Rscript from_r.R
library(reticulate)
library(Matrix)

hcpf <- import("hcpf")

set.seed(1)
users <- 60L
items <- 40L
taste <- rbind(rep(c(0.6, 0.02), each = items / 2), rep(c(0.02, 0.6), each = items / 2))
rate <- taste[rep(1:2, each = users / 2), ]
counts <- Matrix(matrix(rpois(users * items, rate), users), sparse = TRUE)
dimnames(counts) <- list(paste0("user", 1:users), paste0("item", 1:items))

data <- hcpf$Interactions$from_matrix(
  counts, users = rownames(counts), items = colnames(counts)
)
# Integers need an L: Python tells 2 from 2.0.
model <- hcpf$HCPF(2L, element = "degenerate", n_fits = 1L, tempering = 1, random_state = 0L)
model$fit(data, progress = FALSE)

shares <- model$factors("items", "share")$to_pandas()  # an R data.frame with the ids as row names
first <- rownames(shares) %in% paste0("item", 1:20)
by_group <- colSums(shares[first, ])
cat("share of items 1 to 20, by component:", round(sort(by_group), 2), "\n")

best <- model$recommend("user1", n = 3L)$to_pandas()
print(best[, c("user", "item")])
cat("probability of a pair:", round(model$predict_proba("user1", "item1"), 2), "\n")

draws <- model$model_$posterior$rate("user1", c("item1", "item40"))  # draws x pairs
print(round(apply(draws, 2, quantile, c(0.05, 0.5, 0.95)), 2))
