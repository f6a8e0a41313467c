"""What LeRobot does before and after a policy of ours: nothing but rename, batch, move."""

from __future__ import annotations

from typing import Any

from lerobot.processor import (  # pyright: ignore[reportMissingImports]
    AddBatchDimensionProcessorStep,
    DeviceProcessorStep,
    NormalizerProcessorStep,
    PolicyProcessorPipeline,
    RenameObservationsProcessorStep,
    UnnormalizerProcessorStep,
)
from lerobot.processor.converters import (  # pyright: ignore[reportMissingImports]
    policy_action_to_transition,
    transition_to_policy_action,
)


def make_maniple_pre_post_processors(config: Any, dataset_stats: Any = None) -> tuple[Any, Any]:
    """Return both pipelines; the normalisers are there because LeRobot's scripts set them."""
    both = {**config.input_features, **config.output_features}
    before = [
        RenameObservationsProcessorStep(rename_map={}),
        AddBatchDimensionProcessorStep(),
        DeviceProcessorStep(device=config.device),
        NormalizerProcessorStep(features=both, norm_map=config.normalization_mapping),
    ]
    after = [
        UnnormalizerProcessorStep(
            features=config.output_features, norm_map=config.normalization_mapping
        ),
        DeviceProcessorStep(device="cpu"),
    ]
    return (
        PolicyProcessorPipeline(steps=before, name="policy_preprocessor"),
        PolicyProcessorPipeline(
            steps=after,
            name="policy_postprocessor",
            to_transition=policy_action_to_transition,
            to_output=transition_to_policy_action,
        ),
    )
