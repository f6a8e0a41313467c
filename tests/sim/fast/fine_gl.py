"""Let GL draw with so many faces that its light, computed at corners, is right everywhere."""


def use_many_faces(monkeypatch):
    """Replace the lean settings of GLRenderer."""

    def many_faces(model, quality, width, height):
        model.vis.global_.offwidth, model.vis.global_.offheight = width, height
        shapes = model.vis.quality
        shapes.offsamples = shapes.shadowsize = 0
        shapes.numslices, shapes.numstacks, shapes.numquads = 128, 64, 16
        # The third size of a plane is the distance between its grid lines.
        model.geom_size[model.geom_type == 0, 2] = 0.01

    monkeypatch.setattr("maniple.sim.gl_renderer._set_quality", many_faces)
