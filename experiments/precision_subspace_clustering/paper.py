"""The numbers that the paper prints, and the details that it leaves out and that had to be chosen."""

# Table 1, Extended Yale B: (NMI, ARI) by number of subjects.
OURS = {10: (0.6193, 0.4200), 20: (0.6310, 0.3851), 30: (0.5660, 0.3092), 38: (0.5567, 0.2808)}
KTRR = {10: (0.3664, 0.2062), 20: (0.4129, 0.2037), 30: (0.4411, 0.1939), 38: (0.4537, 0.1905)}

# For each setting: the paper's choice, and the choice here.
SETTINGS = {
    "bandwidth sigma": ("not said", "the median distance of the images, the same for all iterations"),
    "lambda of line 3 and of line 6": (
        "one letter, not said",
        "0.05 to 0.5, both the same and absolute; 0.2 in `mercer.papers`",
    ),
    "rows": ("line 11: normalized", "of length 1, before the first iteration too"),
    "truncation": ("none, though KTRR is named after it", "none for the paper's rows; 6 coefficients for ours"),
    "affinity": ("|C| + |C|^T", "the same for the paper's rows; for ours the largest of each column scaled to 1 first"),
    "spectral step": (
        "Ng et al. (2001), unit rows",
        "scikit-learn's for the paper's rows, with unit rows beside it; unit rows for ours",
    ),
    "third basis vector of the toy": (
        "garbled: 5.2, sqrt 5, 1, sqrt 5, 0",
        "as printed, and as (5.2, 1, 0, 0, 0) / sqrt 5",
    ),
    "coefficients, n, sigma, lambda of the toy": ("not said", "in the table of the toy"),
}
