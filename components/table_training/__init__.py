"""The stage that trains one model over the rows of several sites, in torch or MXNet.

`run.py` is the stage; what joins the sites is the tree of `geo_training`.
"""
