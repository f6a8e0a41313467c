"""What every training run keeps: its folder, its checkpoints, its metrics, its clock."""
