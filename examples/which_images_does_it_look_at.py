"""Which images does an embedding look at?

An embedding on landmarks is a sum over images that one can see. For a new digit, which landmarks have the largest
part in where it is placed?
"""

# The digits of scikit-learn, without their labels.
from sklearn.datasets import load_digits

X, y = load_digits(return_X_y=True)
X_new, y_new = X[1300:], y[1300:]
X, y = X[:1300], y[:1300]

# Each image is moved and bent a little, twice. The embedding is the best one on which both views agree and images
# differ: no training steps, one eigenproblem.
from mercer import KernelEmbedding

embedding = KernelEmbedding(image_shape=(8, 8), n_landmarks=200, n_components=30, random_state=0).fit(X)

# Labels are used here only to see what came of it: with those of one row in ten, how many new digits does a line tell
# apart?
from mercer.embedding.linear_probe import linear_probe

print(f"in the embedding {linear_probe(embedding, X, y, X_new, y_new).accuracy:.1%}")
print(f"in the pixels    {linear_probe(None, X, y, X_new, y_new).accuracy:.1%}")

# The landmarks of largest influence, below each digit. Many are of another class (orange): near landmarks cancel each
# other, and this score does not see it. So read it as "looked at", not as "looks like".
from mercer.plots import TopLandmarksDisplay

display = TopLandmarksDisplay.from_estimator(
    embedding, X_new[:6], y_new[:6], landmark_labels=y[embedding.landmark_indices_], image_shape=(8, 8)
)
display.figure_.savefig("which_images_does_it_look_at.png", dpi=150)
