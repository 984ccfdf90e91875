# %% role="exercise" exercise="nobody"
def nobody(x):
    # region solution
    return x.mean()
    # endregion
