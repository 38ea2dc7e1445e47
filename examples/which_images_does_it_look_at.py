"""Which images does an embedding look at?

An embedding on landmarks is a sum over images, which can be shown. Which landmarks have the largest influence on the
position of a new digit?
"""

# The data are the digits of scikit-learn; the embedding does not use their labels.
from sklearn.datasets import load_digits

X, y = load_digits(return_X_y=True)
X_new, y_new = X[1300:], y[1300:]
X, y = X[:1300], y[:1300]

# Two views of each image are made by small shifts and distortions. The embedding is the optimum of a loss by which the
# views of an image should agree and different images differ. It takes one eigenproblem and no training steps.
from mercer import KernelEmbedding

embedding = KernelEmbedding(image_shape=(8, 8), n_landmarks=200, n_components=30, random_state=0).fit(X)

# Labels are used only to score the embedding: how many new digits does a linear classifier recognize, if it is trained
# on the labels of one row in ten?
from mercer.embedding.linear_probe import linear_probe

print(f"in the embedding {linear_probe(embedding, X, y, X_new, y_new).accuracy:.1%}")
print(f"in the pixels    {linear_probe(None, X, y, X_new, y_new).accuracy:.1%}")

# The figure shows the landmarks of largest influence below each digit. Many are of another class (orange), since the
# contributions of near landmarks cancel each other, which this score ignores. They are the images that the embedding
# looks at, and not those that look like the digit.
from mercer.plots import TopLandmarksDisplay

display = TopLandmarksDisplay.from_estimator(
    embedding, X_new[:6], y_new[:6], landmark_labels=y[embedding.landmark_indices_], image_shape=(8, 8)
)
display.figure_.savefig("which_images_does_it_look_at.png", dpi=150)
