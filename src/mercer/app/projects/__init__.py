"""Workflows from raw data to answers: predict a column, embed rows, or cluster them. A file keeps each as a whole.

They are not estimators of arrays: `fit` takes a data frame or the images of a folder, and `predict_frame` returns a
data frame.
"""

from mercer.app.projects.clustering import DataClustering
from mercer.app.projects.embedding import DataEmbedding
from mercer.app.projects.table_prediction import TablePrediction

__all__ = ["DataClustering", "DataEmbedding", "TablePrediction"]
